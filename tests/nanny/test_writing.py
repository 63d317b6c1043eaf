"""Writes to a real HQ that another write has overtaken."""

from __future__ import annotations

from hqclient import Client
from nanny.world.writing import InstanceWrite, InstanceWriter
from serving.clock import SystemClock
from tests.support.sample_instances import instance
from tests.support.secured import served


async def test_an_instance_created_twice_exists_and_one_of_another_service_is_refused() -> None:
    """The watch may show a new instance later than the next look at it."""
    async with served(None) as hq, Client([hq.addresses.grpc]) as client:
        writer = InstanceWriter({"here": client}, SystemClock())
        key = ("here", "web-1")
        create = InstanceWrite(key, instance("web-1", "web"), 0, "", "web")
        first = await writer.send([create])
        again = await writer.send([create])
        assert (again.versions, again.refused) == (first.versions, {})
        other = await writer.send([InstanceWrite(key, instance("web-1", "mail"), 0, "", "mail")])
        assert other.versions == {}
        assert "already exists" in other.refused[key]
        gone = await writer.send([InstanceWrite(key, None, first.versions[key], "", "web")])
        assert (gone.deleted, gone.versions) == ({key}, {})


async def test_a_write_for_a_service_does_not_change_an_instance_of_another_service() -> None:
    """Nanny's own grant covers both services: HQ compares."""
    async with served(None) as hq, Client([hq.addresses.grpc]) as client:
        writer = InstanceWriter({"here": client}, SystemClock())
        key = ("here", "web-1")
        stored = (await client.create(instance("web-1", "mail"))).instance
        changed = instance("web-1", "web", text="changed")
        changed.meta.version = stored.meta.version
        for after in (changed, None):
            written = await writer.send([InstanceWrite(key, after, stored.meta.version, "", "web")])
            assert "belongs to another service, not web" in written.refused[key]
        assert (await client.get("web-1")).instance == stored
