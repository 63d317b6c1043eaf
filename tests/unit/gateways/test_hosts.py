"""Names of hosts are resolved once, kept while the resolver fails, and left out without an address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

import pytest

from gateways.picture.addresses import Addressing, LeftOut
from gateways.picture.hosts import HostResolver
from tests.support.pictures import PictureBuilder, known


class Resolver:
    """Resolves the names that a test put in, and no others."""

    def __init__(self, **names: Collection[str]) -> None:
        self.names = {name.replace("_", "-"): found for name, found in names.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Collection[str]:
        self.asked.append(name)
        await asyncio.sleep(0)
        if name not in self.names:
            raise OSError(f"no such name: {name}")
        return self.names[name]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0)


async def test_an_address_resolves_to_itself() -> None:
    hosts = HostResolver(Resolver())
    assert (hosts.addresses("10.0.0.1"), hosts.addresses("FE80::1"), hosts.names) == (("10.0.0.1",), ("fe80::1",), 0)


async def test_a_name_is_pending_then_has_its_addresses() -> None:
    resolver = Resolver(node_1=["10.0.0.2", "10.0.0.1", "10.0.0.1"])
    async with HostResolver(resolver) as hosts:
        assert hosts.addresses("node-1") is None
        await until(lambda: hosts.addresses("node-1") is not None)
        assert hosts.addresses("node-1") == ("10.0.0.1", "10.0.0.2")
        assert resolver.asked == ["node-1"]


async def test_a_resolver_that_fails_later_changes_nothing() -> None:
    resolver = Resolver(node_1=["10.0.0.1"])
    async with HostResolver(resolver, refresh_s=0.001) as hosts:
        hosts.addresses("node-1")
        await until(lambda: hosts.addresses("node-1") == ("10.0.0.1",))
        resolver.names.clear()
        await until(lambda: len(resolver.asked) > 3)
        assert (hosts.addresses("node-1"), hosts.unresolved) == (("10.0.0.1",), 0)
        resolver.names["node-1"] = ["10.0.0.9"]
        await until(lambda: hosts.addresses("node-1") == ("10.0.0.9",))


async def test_a_name_that_nobody_asks_for_is_forgotten() -> None:
    async with HostResolver(Resolver(node_1=["10.0.0.1"]), refresh_s=0.001) as hosts:
        hosts.addresses("node-1")
        await until(lambda: not hosts.names)


async def test_unresolved_names_of_one_service_keep_no_other_service_waiting() -> None:
    """Otherwise a thousand such names would keep new hosts of other services out for minutes."""
    waiting: list[str] = []

    async def resolve(name: str) -> Collection[str]:
        if name.startswith("slow"):
            waiting.append(name)
            await asyncio.sleep(1e6)
        return ["10.0.0.1"]

    async with HostResolver(resolve, refresh_s=0.001) as hosts:
        for number in range(100):
            assert hosts.addresses(f"slow-{number}", "web") is None
        await until(lambda: len(waiting) == 4)
        assert hosts.addresses("node-1", "mail") is None
        await until(lambda: hosts.addresses("node-1", "mail") == ("10.0.0.1",))
        assert len(waiting) == 4


async def test_a_name_is_looked_up_once_for_all_services() -> None:
    """If kept for each service, the names of a few thousand nodes would reach the limit, and instances be left out."""
    resolver = Resolver(node_1=["10.0.0.1"])
    async with HostResolver(resolver) as hosts:
        for number in range(50):
            hosts.addresses("node-1", "web")
            await until(lambda: hosts.addresses("node-1", "web") is not None)
            assert hosts.addresses("node-1", f"other-{number}") == ("10.0.0.1",)
        assert (hosts.names, len(resolver.asked)) == (1, 1)


async def test_a_service_that_shares_a_name_does_not_wait_for_the_first_to_name_it() -> None:
    release = asyncio.Event()

    async def resolve(name: str) -> Collection[str]:
        if name.startswith("slow"):
            await release.wait()
        return ["10.0.0.1"]

    async with HostResolver(resolve) as hosts:
        for name in (*(f"slow-{number}" for number in range(4)), "node-1"):
            assert hosts.addresses(name, "web") is None
        await asyncio.sleep(0)
        assert hosts.addresses("node-1", "mail") is None
        await until(lambda: hosts.addresses("node-1", "mail") == ("10.0.0.1",))
        release.set()


async def test_a_service_whose_names_have_no_address_is_unknown_and_not_empty(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resolver = Resolver()
    async with HostResolver(resolver) as hosts:
        pictured, addressing = PictureBuilder(hosts), Addressing(hosts)
        pictured.put(known("web-1", host="node-1"))
        assert addressing.places(pictured.picture.ready("web")).is_unknown
        pictured.told.clear()
        with caplog.at_level(logging.WARNING):
            await until(lambda: pictured.told == [["web"]])
            for _ in range(2):
                addressing.places(pictured.picture.ready("web"))
            places = addressing.places(pictured.picture.ready("web"))
        assert places.is_unknown
        assert places.left_out == {LeftOut.UNRESOLVED: 1}
        assert addressing.left_out == {LeftOut.UNRESOLVED: 1}
        assert len([line for line in caplog.messages if "left out: its host" in line]) == 1
        assert len([line for line in caplog.messages if "cannot be resolved" in line]) == 1


async def test_a_second_instance_at_one_address_and_port_is_left_out_and_counted() -> None:
    addressing = Addressing(HostResolver(Resolver()))
    twins = [known("web-1", port=80), known("web-2", port=80), known("web-3", port=81)]
    places = addressing.places(twins, "http")
    assert [(place.instance.id, place.port) for place in places.found] == [("web-1", 80), ("web-3", 81)]
    assert places.left_out == {LeftOut.DUPLICATE: 1}
    assert [place.address for place in addressing.places(twins).found] == ["10.0.0.1"]


async def test_an_instance_without_the_port_is_left_out_and_counted() -> None:
    places = Addressing(HostResolver(Resolver())).places([known("web-1")], "grpc")
    assert (places.found, places.left_out, places.is_unknown) == ([], {LeftOut.NO_PORT: 1}, False)
