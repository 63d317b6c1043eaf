"""A write for a service changes no other service's instance, whatever else its caller may write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from hq.errors import WrongService
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from serving.errors import NotFound
from store.memory import MemoryStore
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time
from tests.support.writes import ANY, create, shown, soon, update

FOR_WEB, FOR_MAIL = Precondition(service="web"), Precondition(service="mail")
_NEW = model.InstanceRevision(id="new")
Send = Callable[[Registry, Precondition], Awaitable[Any]]


async def _update(registry: Registry, demanded: Precondition) -> Any:
    return await update(registry, instance("a", "web", text="written"), None, demanded)


async def _put_revision(registry: Registry, demanded: Precondition) -> Any:
    put = partial(registry.writes.put_revision, clear_secrets=False, validate_only=False)
    return await put("a", _NEW, demanded, soon())


async def _delete_revision(registry: Registry, demanded: Precondition) -> Any:
    return await registry.writes.delete_revision("a", "r1", demanded, soon())


async def _delete(registry: Registry, demanded: Precondition) -> Any:
    return await registry.writes.delete("a", demanded, soon())


async def _apply(registry: Registry, demanded: Precondition) -> Any:
    sent = instance("a", "web", text="written")
    sent.meta.version = demanded.version
    apply = partial(registry.apply.apply, validate_only=False, service=demanded.service)
    (applied,) = await apply([sent], demanded.epoch, soon())
    if applied.error is not None:
        raise applied.error


SENDS = pytest.mark.parametrize("send", [_update, _put_revision, _delete_revision, _delete, _apply])


@SENDS
async def test_an_instance_of_another_service_is_left_alone(send: Send) -> None:
    async with running() as registry:
        before = await create(registry, instance("a", "mail"))
        with pytest.raises(WrongService, match=r"instance a belongs to another service, not web") as refused:
            await send(registry, FOR_WEB)
        assert refused.value.reason == "WRONG_SERVICE"
        assert shown(registry, "a") == before
        with pytest.raises(WrongService):
            await send(registry, FOR_WEB._replace(version=before.meta.version))
        assert shown(registry, "a") == before


@SENDS
async def test_an_instance_of_the_service_is_written(send: Send) -> None:
    async with running() as registry:
        await create(registry, instance("a", "web"))
        await send(registry, FOR_WEB)


@in_virtual_time
@SENDS
async def test_a_replica_that_has_not_seen_an_id_change_hands_does_not_write_to_it(send: Send) -> None:
    """The instance was deleted and created again for another service elsewhere, since it was read here."""
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        await create(here.registry, instance("a", "web"))
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await there.registry.writes.delete("a", ANY, soon())
        again = await create(there.registry, instance("a", "mail"))
        sent = asyncio.ensure_future(send(here.registry, FOR_WEB))
        await asyncio.sleep(1)
        here.link.release_watch()
        with pytest.raises(WrongService):
            await sent
        assert shown(there.registry, "a") == again


@in_virtual_time
@SENDS
async def test_a_replica_that_has_not_seen_an_id_given_to_the_service_asks_the_store(send: Send) -> None:
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        await create(here.registry, instance("a", "mail"))
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await there.registry.writes.delete("a", ANY, soon())
        await create(there.registry, instance("a", "web"))
        sent = asyncio.ensure_future(send(here.registry, FOR_WEB))
        await asyncio.sleep(1)
        assert not sent.done()
        here.link.release_watch()
        await sent


async def test_apply_for_a_service_creates_instances_of_no_other() -> None:
    async with running() as registry:
        items = [instance("a", "web"), instance("b", "mail")]
        own, other = await registry.apply.apply(items, "", soon(), validate_only=False, service="web")
        assert own.error is None
        assert isinstance(other.error, WrongService)
        assert registry.replica.cache.get("b") is None


async def test_an_update_may_still_give_an_instance_to_another_service() -> None:
    async with running() as registry:
        await create(registry, instance("a", "web"))
        assert (await update(registry, instance("a", "mail"), ["meta.service_id"], FOR_WEB)).meta.service_id == "mail"


async def test_writers_of_two_services_never_change_an_instance_the_other_has_just_got() -> None:
    """One replica deletes and creates an id for two services in turn; at another one both keep writing it."""
    store, rng, written = MemoryStore(), random.Random(7), {"web": 0, "mail": 0}
    async with running(store) as owning, running(store, replica="replica-2", seed=2) as writing:
        await create(owning, instance("a", "web"))
        is_over = asyncio.Event()

        async def hand_over() -> None:
            number = 0
            while number < 60 or min(written.values()) < 3:
                number += 1
                await owning.writes.delete("a", ANY, soon())
                await create(owning, instance("a", ("web", "mail")[number % 2]))
                for _ in range(rng.randrange(60)):
                    await asyncio.sleep(0)
            is_over.set()

        async def write(service: str) -> None:
            put = partial(writing.writes.put_revision, clear_secrets=False, validate_only=False)
            while not is_over.is_set():
                for _ in range(rng.randrange(60)):  # or nobody could ever hand it over
                    await asyncio.sleep(0)
                try:
                    entry = await put("a", _NEW, Precondition(service=service), soon())
                except (WrongService, NotFound):
                    continue
                assert entry.traits.service == service
                written[service] += 1

        async with asyncio.timeout(60):
            await asyncio.gather(hand_over(), write("web"), write("mail"))
