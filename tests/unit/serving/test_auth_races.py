"""Rights are checked where the write is made, so that nothing comes in between; a move moves secrets at once."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqapi.rules import FETCH, UPLOAD
from serving.auth.policy import parse
from serving.errors import OutOfReach, PermissionDenied, ServiceError
from serving.rights.access import Access, Identity, ProofKind
from serving.rights.rules import Rule
from store.memory import MemoryStore
from tests.support.faulty_store import FaultyStore
from tests.support.in_process_replica import running
from tests.support.rights_requests import instance, revision
from tests.support.secured import POLICY

ANY = Precondition()
ROUNDS = 60


def access(name: str, rule: Rule) -> Access:
    grants = parse(POLICY.encode()).scopes(name, "test")
    return Access(Identity(name, ProofKind.TOKEN, 0.0), rule, {r: s for r, s in grants.items() if r in rule.roles})


def deadline(registry: Registry) -> float:
    return registry.replica.clock.now() + 60


async def test_an_uploader_never_writes_an_instance_that_another_service_has_just_got() -> None:
    """One replica moves the instance between two services, while both uploaders keep writing at another one."""
    store, rng, written = MemoryStore(), random.Random(7), {"web": 0, "mail": 0}
    async with running(store) as giving, running(store, replica="replica-2", seed=2) as uploading:
        create = giving.writes.create
        await create(instance("web-1"), "", deadline(giving), validate_only=False)
        stop = asyncio.Event()

        async def give() -> None:
            number = 0
            while number < ROUNDS or min(written.values()) < 3:
                service = ("mail", "web")[number % 2]
                number += 1
                update = giving.writes.update
                asked = instance("web-1", service)
                await update(asked, ["meta.service_id"], ANY, deadline(giving), validate_only=False)
                for _ in range(rng.randrange(60)):
                    await asyncio.sleep(0)
            stop.set()

        async def upload(service: str) -> None:
            permit = access(f"{service}-uploader", UPLOAD).check
            put = partial(uploading.writes.put_revision, clear_secrets=False, validate_only=False, permit=permit)
            number = 0
            while not stop.is_set():
                number += 1
                for _ in range(rng.randrange(60)):  # or nobody could ever give it away
                    await asyncio.sleep(0)
                made = revision("r1")
                made.container.add(name=f"{service}-{number}")
                try:
                    entry = await put("web-1", made, ANY, deadline(uploading))
                except OutOfReach:
                    continue
                assert entry.traits.service == service
                written[service] += 1

        async with asyncio.timeout(60):
            await asyncio.gather(give(), upload("web"), upload("mail"))


async def test_a_lagging_replica_gives_no_secrets_to_the_node_that_an_instance_left() -> None:
    store = MemoryStore()
    behind = FaultyStore(store, random.Random(1))
    async with running(store) as giving, running(behind, replica="replica-2", seed=2) as lagging:
        entry = await giving.writes.create(instance("web-1", node="n1"), "", deadline(giving), validate_only=False)
        await lagging.replica.catch_up.until(entry.version, 5.0)
        agent = access("agent/n1", FETCH)
        fetch = partial(lagging.revisions.get, "web-1", "", "n1", agent.check, is_guarded=True)
        assert (await fetch()).revisions[0].secret
        behind.silence()
        moved = instance("web-1", node="n2")
        await giving.writes.update(moved, ["spec.node_name"], ANY, deadline(giving), validate_only=False)
        asked = asyncio.create_task(fetch())
        for _ in range(50):
            await asyncio.sleep(0)
        assert lagging.replica.cache.get("web-1").traits.node == "n1"  # type: ignore[union-attr]
        assert not asked.done()
        behind.speak()
        with pytest.raises(ServiceError, match="is not on the reporter's node"):
            await asked


async def test_a_replica_that_lags_does_not_tell_the_version_of_a_foreign_instance() -> None:
    store = MemoryStore()
    behind = FaultyStore(store, random.Random(1))
    async with running(store) as giving, running(behind, replica="replica-2", seed=2) as lagging:
        behind.silence()
        await giving.writes.create(instance("web-1"), "", deadline(giving), validate_only=False)
        foreign = access("mail-uploader", UPLOAD).check
        asked = asyncio.create_task(lagging.writes.delete("web-1", Precondition(1), deadline(lagging), foreign))
        for _ in range(50):
            await asyncio.sleep(0)
        assert lagging.replica.cache.get("web-1") is None
        behind.speak()
        with pytest.raises(OutOfReach):
            await asked


async def test_a_batch_of_an_uploader_is_refused_before_anything_is_written() -> None:
    async with running() as registry:
        batch = [instance("web-1"), instance("mail-1", "mail")]
        permit = access("web-uploader", UPLOAD).check
        with pytest.raises(PermissionDenied):
            await registry.apply.apply(batch, "", deadline(registry), validate_only=False, permit=permit)
        assert len(registry.replica.cache) == 0


async def test_a_repeated_request_id_does_not_reveal_anothers_instance() -> None:
    async with running() as registry:
        first = instance("shared", "mail")
        await registry.writes.create(first, "request-1", deadline(registry), validate_only=False)
        permit = access("web-uploader", UPLOAD).check
        again = instance("shared", "web")
        with pytest.raises(OutOfReach):
            await registry.writes.create(again, "request-1", deadline(registry), validate_only=False, permit=permit)
