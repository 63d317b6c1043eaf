"""All judges by name, in the order in which they run."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from tests.judges import (
    curl,
    envoy,
    envoy_all,
    everyday,
    gateway_judges,
    haproxy,
    interop,
    javascript,
    kubernetes,
    nginx,
    one_percent,
    prometheus,
    spring,
    suites,
)
from tests.judges.verdict import Missing, Verdict

Judge = Callable[[Path], Awaitable[Verdict]]

JUDGES: Final[dict[str, Judge]] = {
    "h2spec": suites.h2spec,
    "h2spec-tls": suites.h2spec_tls,
    "conformance": suites.conformance,
    "interop-go": interop.go,
    "interop-go-tls": interop.go_tls,
    "interop-python": interop.python,
    "interop-java": interop.java_netty,
    "interop-java-okhttp": interop.java_okhttp,
    "interop-node": interop.node_js,
    "curl": curl.curl,
    "grpcurl": everyday.grpcurl,
    "ghz": everyday.ghz,
    "buf-curl": everyday.buf,
    "connect-node": javascript.connect_node,
    "browser": javascript.browser,
    "prometheus": prometheus.prometheus,
    "xds-python": gateway_judges.xds_python,
    "xds-go": gateway_judges.xds_go,
    "xds-node": gateway_judges.xds_node,
    "xds-java": gateway_judges.xds_java,
    "xds-numbers": gateway_judges.xds_numbers,
    "xds-envoy": envoy.envoy,
    "xds-envoy-all": envoy_all.envoy_all,
    "xds-envoy-whole": envoy.envoy_whole,
    "dns-dig": gateway_judges.dig,
    "dns-kdig": gateway_judges.kdig,
    "dns-dnsmasq": gateway_judges.dnsmasq,
    "dns-coredns": gateway_judges.coredns,
    "dns-go": gateway_judges.dns_go,
    "dns-grpc": gateway_judges.dns_grpc,
    "dns-libc": gateway_judges.dns_libc,
    "dns-haproxy": haproxy.haproxy,
    "dns-nginx": nginx.nginx,
    "weight-xds-python": one_percent.xds_python,
    "weight-xds-go": one_percent.xds_go,
    "weight-envoy": one_percent.envoy,
    "weight-haproxy": one_percent.haproxy,
    "consul-template": gateway_judges.consul_template,
    "consul-go": gateway_judges.consul_go,
    "consul-python": gateway_judges.consul_python,
    "consul-prometheus": gateway_judges.consul_prometheus,
    "consul-spring": spring.spring,
    "consul-traefik": gateway_judges.consul_traefik,
    "kubernetes": kubernetes.kubernetes,
}


async def run_judge(name: str) -> Verdict:
    """Run one judge. That the server cannot even be started is a failure; that the judge is not here is not."""
    with tempfile.TemporaryDirectory(prefix="hq-judge-") as directory:
        try:
            return await JUDGES[name](Path(directory))
        except Missing as missing:
            return Verdict(skipped=str(missing))
        except Exception as error:  # one judge that breaks down does not stop the others
            return Verdict(failed=[f"all of it: {type(error).__name__}: {error}"])


def run_judge_here(name: str) -> tuple[Verdict, float]:
    """Run one in a process that has nothing else to do; what it found, and the seconds that it took."""
    began = time.monotonic()
    return asyncio.run(run_judge(name)), time.monotonic() - began
