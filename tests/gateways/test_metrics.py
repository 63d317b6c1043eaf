"""Every metric of a gateway is on its page, and moves with what it counts."""

from __future__ import annotations

import asyncio
import re

import pytest

from gateways.consul import metrics as of_consul
from gateways.dns import metrics as of_dns
from gateways.picture import metrics as of_picture
from gateways.xds import metrics as of_xds
from tests.gateways.test_dns import answers, asked
from tests.gateways.test_xds import stream
from tests.support.gateway_process import GatewayProcess, Programs

WEB = "web.service.hq.internal."


async def page(gateway: GatewayProcess) -> str:
    return (await gateway.get("/metrics"))[1]


def value(text: str, name: str, **labels: str) -> float:
    wanted = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    found = re.search(rf"^{name}{re.escape('{' + wanted + '}') if wanted else ''} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.long
async def test_the_metrics_of_each_gateway_are_there_and_move(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.1")  # at the same port: only one of them can be called
    await hq.put("web-3", host="no-such-host.invalid", is_ready=True)
    await hq.put("Odd", "Odd.Name")
    dns, consul = await started.gateway("dns", hq), await started.gateway("consul", hq)
    xds = await started.gateway("xds", hq)
    tables = ((dns, of_dns.METRICS), (consul, of_consul.METRICS), (xds, of_xds.METRICS))
    for gateway, own in tables:
        shown = await page(gateway)
        named = set(re.findall(r"^# TYPE (\S+)", shown, re.MULTILINE))
        declared = {one.name.removesuffix("_total") for one in (*of_picture.METRICS, *own)}
        assert declared <= {name.removesuffix("_total") for name in named}
        assert value(shown, "hq_gateway_instances", ready="true") == 4
        assert value(shown, "hq_gateway_source", source="live") == 1

    await answers(dns, WEB, ("NOERROR", ["10.0.0.1"]))
    await asked(dns.dns, WEB, tcp=True)
    shown = await page(dns)
    assert value(shown, "hq_dns_answers_total", code="NOERROR", transport="tcp") == 1
    assert value(shown, "hq_dns_unnamed_services") == 1
    assert value(shown, "hq_gateway_names") == 1

    await consul.get("/v1/health/service/web")
    await consul.get("/v1/kv/x")
    shown = await page(consul)
    assert value(shown, "hq_consul_answers_total", question="health_service", status="200") == 1
    assert value(shown, "hq_consul_answers_total", question="none", status="501") == 1

    async with stream(xds) as follows:
        await follows.wants("web")
        assert await follows.addresses() == {"web": ["10.0.0.1"]}
        shown = await page(xds)
        assert value(shown, "hq_xds_streams") == 1
        assert value(shown, "hq_xds_responses_total", type="endpoints") == 1
        assert value(shown, "hq_gateway_left_out_total", reason="duplicate") == 1
        assert value(shown, "hq_gateway_left_out_total", reason="unresolved") == 1
        assert value(shown, "hq_gateway_names_unresolved") == 1
    hq.pause()
    async with asyncio.timeout(30):
        while not value(await page(xds), "hq_gateway_stale"):
            await asyncio.sleep(0.05)
