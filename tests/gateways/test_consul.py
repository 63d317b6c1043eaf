"""The Consul gateway as a process: blocking queries over HTTP, tokens, and an HQ that comes and goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import pytest

from tests.gateways.test_metrics import value
from tests.support.gateway_process import GatewayProcess, Programs, fetched
from tests.support.sample_instances import eventually
from tests.support.secured import Secured, served

WEB = "/v1/health/service/web?passing"


async def ids(gateway: GatewayProcess, path: str = WEB, **headers: str) -> list[str]:
    status, body, _ = await gateway.get(path, headers)
    assert status == 200, body
    return [entry["Service"]["ID"] for entry in json.loads(body)]


async def shows(gateway: GatewayProcess, expected: list[str]) -> Mapping[str, str]:
    """Return when it does; the headers of that answer."""
    async with asyncio.timeout(30):
        while await ids(gateway) != expected:
            await asyncio.sleep(0.01)
    return (await gateway.get(WEB))[2]


@pytest.mark.long
async def test_a_blocking_query_ends_with_the_change_and_the_gateway_outlives_hq_and_its_own_death(
    started: Programs,
) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.2")
    gateway = await started.gateway("consul", hq)
    headers = await shows(gateway, ["web-1", "web-2"])
    index = headers["x-consul-index"]
    waiting = asyncio.create_task(gateway.get(f"{WEB}&index={index}&wait=60s"))
    await hq.put("db-1", "db", host="10.0.0.3")
    await hq.report("web-2", is_ready=False)
    assert [entry["Service"]["ID"] for entry in json.loads((await waiting)[1])] == ["web-1"]
    await gateway.has_saved_all_of(hq)

    hq.pause()
    assert await ids(gateway) == ["web-1"]
    await gateway.kill()
    again = await started.gateway("consul", hq)
    assert await ids(again) == ["web-1"]
    status, _, headers = await again.get(f"{WEB}&index={index}&wait=60s")
    assert (status, headers["x-consul-knownleader"]) == (200, "false")
    assert headers["x-consul-index"] != index
    assert (await again.get("/v1/health/service/none"))[0] == 500

    hq.resume()
    await hq.delete("web-1")
    await shows(again, [])
    assert await ids(again, "/v1/health/service/none") == []
    assert await again.terminate() == 0


async def asked_in_turn(gateways: Sequence[GatewayProcess], index: str, questions: int = 6) -> str:
    """Ask one after the other for a moment, with the index of the last answer; the last index. None may be early."""
    early = 0
    for gateway in islice(cycle(gateways), questions):
        before = value((await gateway.get("/metrics"))[1], "hq_consul_waits_total", end="time")
        index = (await gateway.get(f"{WEB}&index={index}&wait=200ms"))[2]["x-consul-index"]
        early += value((await gateway.get("/metrics"))[1], "hq_consul_waits_total", end="time") == before
    assert early == 0, f"{early} of {questions} questions were answered although nothing had changed"
    return index


@pytest.mark.long
async def test_a_client_that_a_balancer_sends_to_one_of_two_gateways_waits_at_both(started: Programs) -> None:
    hq = await started.registry()
    for number in range(3):
        await hq.put(f"web-{number}", host=f"10.0.0.{number}")
    first = await started.gateway("consul", hq, name="first")
    await shows(first, ["web-0", "web-1", "web-2"])
    await hq.delete("web-2")
    second = await started.gateway("consul", hq, name="second")  # it never knew the third instance
    for gateway in (first, second):
        await shows(gateway, ["web-0", "web-1"])
    index = await asked_in_turn((first, second), (await second.get(WEB))[2]["x-consul-index"])

    for asked in (first, second):
        waiting = asyncio.create_task(asked.get(f"{WEB}&index={index}&wait=60s"))
        await hq.report("web-1", is_ready=asked is second)
        index = (await waiting)[2]["x-consul-index"]
        for gateway in (first, second):
            await shows(gateway, ["web-0", "web-1"][: 1 + (asked is second)])
    index = await asked_in_turn((first, second), index)

    for gateway in (first, second):
        await gateway.has_saved_all_of(hq)
    hq.pause()
    index = await asked_in_turn((first, second), index)
    await second.kill()
    await second.again()
    await asked_in_turn((first, second), index)
    hq.resume()


@pytest.mark.long
async def test_a_blocking_query_outlives_the_limits_of_idle_connections(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1")
    gateway = await started.gateway("consul", hq, "--keep-alive", "1s", "--slow-request", "1s")
    index = (await shows(gateway, ["web-1"]))["x-consul-index"]
    waiting = asyncio.create_task(gateway.get(f"{WEB}&index={index}&wait=60s"))
    await asyncio.sleep(4.0)
    assert not waiting.done()
    await hq.report("web-1", is_ready=False)
    assert (await waiting)[0] == 200


@pytest.mark.long
async def test_a_token_of_hq_opens_what_its_policy_covers(started: Programs) -> None:
    files = Secured(started.directory)
    hq = await started.registry()
    await hq.put("web-1")
    await hq.put("db-1", "db")
    plain = files.flags({k: v for k, v in files.given().items() if k in ("jwks", "policy", "issuer", "audience")})
    revoked = started.directory / "revoked.yaml"
    revoked.write_text("subjects: [web-reader-2]")
    gateway = await started.gateway("consul", hq, *plain, "--revoked", str(revoked))
    token = files.issuer.token("web-reader")
    for name, given in (("x-consul-token", token), ("authorization", f"Bearer {token}")):
        assert await ids(gateway, WEB, **{name: given}) == ["web-1"]
        assert (await gateway.get("/v1/health/service/db", {name: given}))[0] == 403
        _, body, _ = await gateway.get("/v1/catalog/services", {name: given})
        assert json.loads(body) == {"web": []}
    assert (await gateway.get(WEB))[0] == 403
    assert (await gateway.get(WEB, {"x-consul-token": "forged"}))[0] == 403
    revoked.write_text("subjects: [web-reader]")
    for name, given in (("authorization", f"Bearer {token}"), ("x-consul-token", token)):

        async def is_refused(name: str = name, given: str = given) -> bool:
            return (await gateway.get(WEB, {name: given}))[0] == 403

        await eventually(is_refused, 20.0, f"a revoked token counts no more as {name}")


@pytest.mark.long
async def test_a_gateway_reads_from_hq_with_an_identity_of_its_own(started: Programs) -> None:
    files = Secured(started.directory)
    (started.directory / "token").write_text(files.issuer.token("web-reader"))
    trust = ("--hq-ca", str(files.authority.cert), "--service", "web")
    async with served(files.security()) as hq:
        token = ("--hq-token-file", str(started.directory / "token"))
        known = await started.gateway("consul", hq.addresses.grpc, *trust, *token)
        assert await ids(known) == []
        unknown = await started.gateway("consul", hq.addresses.grpc, *trust, name="unknown", until_ready=False)
        assert [(await unknown.get(path))[0] for path in (WEB, "/readyz")] == [500, 503]
        await known.terminate()
        await unknown.terminate()


@pytest.mark.long
async def test_a_call_that_writes_is_refused_with_the_way_to_do_it_in_hq(started: Programs) -> None:
    hq = await started.registry()
    gateway = await started.gateway("consul", hq)
    url = f"http://{gateway.http}/v1/agent/service/register"
    status, body, _ = await asyncio.to_thread(fetched, url, {}, "PUT")
    assert status == 501
    assert "ReportStatus" in body


@pytest.mark.long
@pytest.mark.parametrize("flags", [("--service", "web", "--all-services"), ("--http", "0.0.0.0:0", "--all-services")])
async def test_a_command_line_that_would_publish_too_much_is_refused(flags: tuple[str, ...], started: Programs) -> None:
    with pytest.raises(AssertionError, match=r"--service|reachable from other machines"):
        await started.gateway("consul", "127.0.0.1:1", *flags)
