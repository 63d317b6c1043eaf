"""A real Prometheus scrapes a real replica, and finds in it what else to scrape."""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hqpb.v1 import service_pb2 as pb
from store.embedded import free_ports
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
ROOT = Path(__file__).resolve().parent.parent.parent
Ask = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def prometheus(directory: Path, replica: ReplicaProcess) -> AsyncIterator[Ask]:
    """One with the configuration of deploy/, pointed at this replica. `await ask("query", query="up")`."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("needs prometheus (Debian: apt-get install prometheus)")
    text = (ROOT / "deploy" / "prometheus" / "hq.yml").read_text()
    config = yaml.safe_load(text.replace("127.0.0.1:7080", replica.http))
    config["global"]["scrape_interval"] = "1s"
    config["scrape_configs"][1]["http_sd_configs"][0]["refresh_interval"] = "1s"
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    shutil.copy(ROOT / "deploy" / "prometheus" / "alerts.yml", directory)
    address = f"127.0.0.1:{free_ports()[0]}"
    with (directory / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(binary, "--config.file", str(directory / "prometheus.yml")),
            *("--storage.tsdb.path", str(directory / "tsdb"), "--web.listen-address", address),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield lambda what, **parameters: asyncio.to_thread(_ask, address, what, **parameters)
    finally:
        process.kill()
        await process.wait()


def _ask(address: str, what: str, **parameters: str) -> Any:
    url = f"http://{address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None  # it does not listen yet


@pytest.mark.long
async def test_prometheus_scrapes_hq_and_finds_its_targets_in_hq(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix)
    async with prometheus(tmp_path, replica) as ask, replica.stub() as stub:
        # An instance that is HQ itself, so that there is somebody to be scraped.
        made = instance("hq-1", "hq")
        host, _, port = replica.http.rpartition(":")
        made.spec.allocation.host = host
        made.spec.allocation.port.add(name="metrics", number=int(port))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=made))
        agent = Agent(stub, "hq-1")
        await agent.begin()
        await agent.report()

        async def value(query: str) -> str:
            found = await ask("query", query=query)
            return found["result"][0]["value"][1] if found and found["result"] else ""

        async def is_one(query: str) -> bool:
            return await value(query) == "1"

        await eventually(partial(is_one, 'up{job="hq"}'), timeout_s=60, what="a scrape of HQ")
        await eventually(partial(is_one, 'hq_instances{job="hq"}'), timeout_s=60, what="a metric of HQ")
        found = 'up{job="instances",instance="hq-1",service="hq",node="node-1",revision="r1",cluster="default"}'
        await eventually(partial(is_one, found), timeout_s=60, what="a target found in HQ, scraped and labelled")
        rules = await ask("rules")
        assert {rule["health"] for group in rules["groups"] for rule in group["rules"]} <= {"ok", "unknown"}
        await agent.report(ready=False)

        async def nobody() -> bool:
            targets = await ask("targets", state="active")
            return [t for t in targets["activeTargets"] if t["scrapePool"] == "instances"] == []

        await eventually(nobody, timeout_s=60, what="no target that is not ready")
