"""A gateway never makes the world worse: the same rules for all three, each process killed (SIGKILL) in between.

What is said of a service is its addresses, or one of

    nobody      it exists and has nobody ready      DNS: no data     Consul: [] when `passing`   xDS: no endpoints
    absent      every location said so              DNS: NXDOMAIN    Consul: []                  xDS: no endpoints
    unknown     no word of somebody who may know    DNS: SERVFAIL    Consul: 500                 xDS: nothing is sent

Where each rule is shown: "here" is this file, with processes; a word is part of a test's name, in tests/unit/gateways
and tests/gateways.

| rule | DNS | Consul | xDS |
| --- | --- | --- | --- |
| HQ away at the first start | here | here | here |
| HQ away later, and then the gateway killed (long) | here | here | here |
| the gateway killed while HQ is there, and its file old (long) | here | here | here |
| HQ away for five minutes, in real time (long) | here | here | here |
| one location away, and then the gateway killed (long) | here | here | here |
| one location away at the start (long) | here | here | here |
| two gateways behind a balancer, one of which knows nothing (long) | here | here | here |
| … which a client asks in turn | `keeps_its_part_of_many_addresses` | `index_of_another` | `reconnect_to_another` |
| an empty service, a deleted one, one that never was (long) | here | here | here |
| 10,000 instances of one service, and then the gateway killed (long) | here | here | here |
| … answered in little time and bytes | `of_ten_thousand` | `ten_thousand_instances` | `ten_thousand_endpoints` |
| an unrelated change | `cached_answers_last` | `unrelated_change_wakes` | `unrelated_change_sends` |
| changes at random | `knowledge_counts` | `continues_at_any_gateway` | `client_ends_with`, `both_forms` |
| who has all clusters loses none to what is not known | | | `clusters_are_kept`, `removes_nothing` |
| an index never misleads | | `another_index_than`, `index_of_another` | |
| a client that is slow | | `never_missed` | `stream_sends` |
| hosts that are names | `host_whose_name` | their names are shown | `wait_for_hosts` |
| bounded answers and askers | `no_answer_is_longer`, `its_rate` | `waiting_queries_is` | `names_of`, `keeps_nothing` |
| clients of others: 200 changes, SIGKILL, HQ away | tests/judges | tests/judges | tests/judges |
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.gateways.test_dns import asked
from tests.gateways.test_xds import DeltaStream, Stream, stream
from tests.support.gateway_process import GatewayProcess, Programs, Registry

NOBODY, ABSENT, UNKNOWN = ["nobody"], ["absent"], ["unknown"]
_QUIET_S: Final = 0.5
_PATIENCE_S: Final = 20.0  # for an answer (of ten thousand endpoints, too) on a busy machine
_AWAY_S: Final = 300.0


async def dns_says(gateway: GatewayProcess, service: str, location: str) -> list[str]:
    name = f"{service}.service.{f'{location}.dc.' if location else ''}hq.internal."
    code, found = await asked(gateway.dns, name)
    return found or {"NOERROR": NOBODY, "NXDOMAIN": ABSENT, "SERVFAIL": UNKNOWN}[code]


async def consul_says(gateway: GatewayProcess, service: str, location: str) -> list[str]:
    status, body, _ = await gateway.get(f"/v1/health/service/{service}?dc={location}")
    if status == 500:
        return UNKNOWN
    entries = json.loads(body)
    ready = [one["Service"]["Address"] for one in entries if one["Checks"][0]["Status"] == "passing"]
    return sorted(ready) or (NOBODY if entries else ABSENT)


async def xds_says(gateway: GatewayProcess, service: str, _location: str, patience_s: float = _QUIET_S) -> list[str]:
    whole, delta = await asyncio.gather(
        *(_stream_says(gateway, service, patience_s, form) for form in (Stream, DeltaStream))
    )
    assert whole == delta, "the two forms of a stream"
    return whole


async def _stream_says(gateway: GatewayProcess, service: str, patience_s: float, form: type[Stream]) -> list[str]:
    async with stream(gateway, form=form) as follows:
        await follows.wants(service)
        try:
            async with asyncio.timeout(patience_s):
                found = await follows.addresses()
        except TimeoutError:
            return UNKNOWN
        return sorted(found[service]) or NOBODY


SAYS: Final[dict[str, Callable[[GatewayProcess, str, str], Awaitable[list[str]]]]] = {
    "dns": dns_says,
    "consul": consul_says,
    "xds": xds_says,
}


async def _soon(holds: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                return await holds()
            except AssertionError:
                await asyncio.sleep(0.02)


class Three:
    """A gateway of each kind before one HQ. `name`: of these three, if there are more."""

    def __init__(self, started: Programs, hq: Registry | str, name: str = "") -> None:
        self._started, self._hq, self._name = started, hq, name
        self._gateways: dict[str, GatewayProcess] = {}

    async def start(self, *, until_ready: bool = True) -> None:
        found = [
            self._started.gateway(kind, self._hq, name=kind + self._name, until_ready=until_ready) for kind in SAYS
        ]
        self._gateways = dict(zip(SAYS, await asyncio.gather(*found), strict=True))

    async def say(self, expected: Sequence[str], service: str = "web", location: str = "") -> None:
        """At once, all of them."""
        for kind, gateway in self._gateways.items():
            if kind == "xds" and location:
                continue  # it has no question of one location
            wanted = NOBODY if kind == "xds" and expected is ABSENT else expected
            if kind == "xds" and expected != UNKNOWN:  # a busy machine may take its time to open a stream
                said = await xds_says(gateway, service, location, _PATIENCE_S)
            else:
                said = await SAYS[kind](gateway, service, location)
            assert said == wanted, (kind, service, location)

    async def say_of_many(self, expected: Sequence[str]) -> None:
        """At once: Consul and xDS name them all, DNS sixteen of them (its documented subset over UDP)."""
        dns, consul, xds = self._gateways.values()
        some = await dns_says(dns, "web", "")
        assert len(some) == 16
        assert set(some) <= set(expected)
        assert await consul_says(consul, "web", "") == sorted(expected)
        assert await xds_says(xds, "web", "", _PATIENCE_S) == sorted(expected)

    async def come_to_say_of_many(self, expected: Sequence[str]) -> None:
        """Within half a minute."""
        await _soon(lambda: self.say_of_many(expected))

    async def come_to_say(self, expected: Sequence[str], service: str = "web", location: str = "") -> None:
        """Within half a minute."""
        await _soon(lambda: self.say(expected, service, location))

    async def why(self) -> list[str]:
        """What DNS says of its answer's age and locations."""
        return (await asked(self._gateways["dns"].dns, "_why.web.service.hq.internal.", "TXT"))[1]

    async def last_contact_s(self) -> float:
        """How old Consul's answer says that it is."""
        _, _, headers = await self._gateways["consul"].get("/v1/health/service/web")
        return int(headers["x-consul-lastcontact"]) / 1000

    async def pages(self, *paths: str) -> list[tuple[int, ...]]:
        """The status of each, by gateway."""
        return [tuple([(await one.get(path))[0] for path in paths]) for one in self._gateways.values()]

    async def are_terminated(self) -> list[int]:
        """SIGTERM; their exit codes."""
        return [await gateway.terminate() for gateway in self._gateways.values()]

    async def kill(self) -> None:
        """SIGKILL."""
        await asyncio.gather(*(gateway.kill() for gateway in self._gateways.values()))

    async def start_again(self) -> None:
        """On what they saved. One by one: each has two seconds to hear HQ, then it shows what it saved."""
        for gateway in self._gateways.values():
            await gateway.again()

    async def are_killed(self) -> None:
        """SIGKILL, and they start again on what they saved."""
        await self.kill()
        await self.start_again()

    async def lose_all(self) -> None:
        """SIGKILL, and they start again with nothing."""
        for gateway in self._gateways.values():
            await gateway.kill()
            gateway.forget()
            await gateway.again(until_ready=False)

    async def have_saved(self, *words: str) -> None:
        await asyncio.gather(*(gateway.is_saved(*words) for gateway in self._gateways.values()))


def test_the_tests_that_the_table_names_are_there() -> None:
    folders = (Path(__file__).parent, Path(__file__).parents[1] / "unit" / "gateways")
    tests = "".join(line for folder in folders for path in folder.glob("test_*.py") for line in _tests(path))
    named = re.findall(r"`(\w+)`", (__doc__ or "").partition("| rule")[2])
    assert [name for name in named if name not in tests] == []


def _tests(path: Path) -> list[str]:
    return re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)


@pytest.mark.long
async def test_if_hq_is_away_at_the_first_start_services_are_unknown_until_it_is_there(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    hq.pause()
    three = Three(started, hq)
    await three.start(until_ready=False)
    await three.say(UNKNOWN)
    assert await three.pages("/readyz", "/livez") == [(503, 200)] * 3
    hq.resume()
    await three.come_to_say(["10.0.0.1"])
    await three.say(ABSENT, "db")


@pytest.mark.long
async def test_last_known_answers_are_served_while_hq_is_away_and_after_a_gateway_crash(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.2", is_ready=False)
    await hq.put("idle-1", "idle", is_ready=False)
    await hq.put("gone-1", "gone", host="10.0.0.3")
    three = Three(started, hq)
    await three.start()
    await three.come_to_say(["10.0.0.3"], "gone")
    await hq.delete("gone-1")
    await three.come_to_say(ABSENT, "gone")
    await three.have_saved(await hq.mark())

    hq.pause()
    for service, said in (("web", ["10.0.0.1"]), ("idle", NOBODY), ("gone", ABSENT), ("never", ABSENT)):
        await three.say(said, service)
    await three.are_killed()
    # A file says who is there and never who is not: somebody may have come since.
    for service, said in (("web", ["10.0.0.1"]), ("idle", NOBODY), ("gone", UNKNOWN), ("never", UNKNOWN)):
        await three.say(said, service)
    assert any("saved, stale" in line for line in await three.why())
    hq.resume()
    await hq.report("web-2", is_ready=True)
    await three.come_to_say(["10.0.0.1", "10.0.0.2"])
    for service, said in (("idle", NOBODY), ("gone", ABSENT), ("never", ABSENT)):
        await three.come_to_say(said, service)
    await hq.delete("web-1")
    await hq.delete("web-2")
    await three.come_to_say(ABSENT)
    assert await three.are_terminated() == [0, 0, 0]


@pytest.mark.long
async def test_a_location_that_goes_away_keeps_its_instances_and_denies_nothing_it_might_have(
    started: Programs,
) -> None:
    east, west = await started.registry("east", "east"), await started.registry("west", "west")
    await east.put("web-1", host="10.0.0.1")
    await west.put("web-2", host="10.0.0.2")
    federation = await started.federation(east, west)
    three = Three(started, federation.grpc)
    await three.start()
    await three.come_to_say(["10.0.0.1", "10.0.0.2"])
    await three.say(["10.0.0.2"], location="west")
    await three.say(ABSENT, "db")

    await west.kill()
    await east.put("web-3", host="10.0.0.3")
    every = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    await three.come_to_say(every)
    await three.say(ABSENT, "db")  # it has said so, and its word stands
    async with asyncio.timeout(30):
        while "missing locations: west" not in str(await three.why()):
            await asyncio.sleep(0.02)

    await three.have_saved("web-3")
    await three.are_killed()
    await three.come_to_say(every)
    await three.come_to_say(ABSENT, "db", "east")
    await three.say(UNKNOWN, "db")
    await three.say(UNKNOWN, "db", "west")


@pytest.mark.long
async def test_gateways_that_start_while_a_location_is_away_show_the_others(started: Programs) -> None:
    east, west = await started.registry("east", "east"), await started.registry("west", "west")
    await east.put("web-1", host="10.0.0.1")
    federation = await started.federation(east, west)
    await west.kill()
    three = Three(started, federation.grpc)
    await three.start()
    await three.come_to_say(["10.0.0.1"])
    await three.say(UNKNOWN, "db")
    await three.say(ABSENT, "db", "east")


@pytest.mark.long
async def test_of_two_gateways_behind_a_balancer_the_one_that_knows_nothing_denies_nothing(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    first, second = Three(started, hq), Three(started, hq, "-b")
    for three in (first, second):
        await three.start()
        await three.come_to_say(["10.0.0.1"])

    hq.pause()
    await first.lose_all()
    assert await first.pages("/readyz") == [(503,)] * 3  # a balancer that asks for it leaves them out
    assert await second.pages("/readyz") == [(200,)] * 3
    await first.say(UNKNOWN)  # and one that does not hears no empty answer
    await second.say(["10.0.0.1"])
    hq.resume()
    await hq.put("web-2", host="10.0.0.2")
    for three in (first, second):
        await three.come_to_say(["10.0.0.1", "10.0.0.2"])


@pytest.mark.long
async def test_a_gateway_that_starts_again_does_not_go_back_to_its_file_while_hq_is_there(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.2", is_ready=False)
    three = Three(started, hq)
    await three.start()
    await three.come_to_say(["10.0.0.1"])
    await three.have_saved("web-1", "web-2")
    await three.kill()
    await hq.report("web-2", is_ready=True)
    await hq.report("web-1", is_ready=False)
    await three.start_again()
    await three.say(["10.0.0.2"])


@pytest.mark.long
async def test_ten_thousand_instances_of_one_service_are_told_whole_and_outlive_hq_and_the_gateway(
    started: Programs,
) -> None:
    hq = await started.registry()
    hosts = {f"web-{n}": f"10.1.{n // 250}.{n % 250}" for n in range(10_000)}
    await hq.put_many(hosts)
    three = Three(started, hq)
    await three.start()
    every = sorted(hosts.values())
    await three.come_to_say_of_many(every)
    await three.have_saved(await hq.mark())

    hq.pause()
    await three.say_of_many(every)
    await three.are_killed()
    await three.say_of_many(every)
    hq.resume()
    await hq.put("web-new", host="10.2.0.1")
    await three.come_to_say_of_many(["10.2.0.1", *every])


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_hq_away_for_five_minutes_changes_nothing_for_anybody(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.2", is_ready=False)
    await hq.put("idle-1", "idle", is_ready=False)
    three = Three(started, hq)
    await three.start()
    await three.come_to_say(["10.0.0.1"])
    await three.have_saved("web-1", "idle-1")

    hq.pause()
    loop = asyncio.get_running_loop()
    ends = loop.time() + _AWAY_S
    while loop.time() < ends:
        for service, said in (("web", ["10.0.0.1"]), ("idle", NOBODY), ("never", ABSENT)):
            await three.say(said, service)
        await asyncio.sleep(1.0)
    assert await three.last_contact_s() > _AWAY_S - 30
    await three.are_killed()
    await three.say(["10.0.0.1"])
    await three.say(NOBODY, "idle")

    hq.resume()
    await hq.report("web-2", is_ready=True)
    await three.come_to_say(["10.0.0.1", "10.0.0.2"])
