"""The writing calls over a replica in memory: preconditions, conflicts, and what goes together."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from hq.errors import AlreadyExists, EpochChanged, StoreLimit, VersionConflict
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, NotFound
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import ANY, create, shown, soon, update


async def ready_agent(registry: Registry, instance_id: str, revision: str = "r1", node: str = "node-1") -> int:
    reporter = await registry.reports.begin(instance_id, revision, node, soon())
    status = model.RevisionStatus(id=revision, incarnation=reporter.incarnation, sequence=1)
    status.ready.status = model.CONDITION_STATUS_TRUE
    report = pb.ReportStatusRequest(instance_id=instance_id, uid=reporter.uid, node=node, revision=status)
    await registry.reports.report(report, soon())
    return reporter.incarnation


async def test_the_answer_of_create_is_the_instance_as_shown() -> None:
    async with running() as registry:
        answered = await create(registry, instance("a-1"))
        assert answered == shown(registry, "a-1")
        assert answered.meta.version == answered.meta.status_version > 0
        assert answered.status.ready.reason == "NothingReported"


async def test_an_id_in_use_cannot_be_created_again() -> None:
    async with running() as registry:
        first = await create(registry, instance("a-1"), "request-1")
        with pytest.raises(AlreadyExists) as refused:
            await create(registry, instance("a-1"))
        assert refused.value.current == first.meta.version


async def test_the_same_creation_may_be_sent_again() -> None:
    async with running() as registry:
        first = await create(registry, instance("a-1"), "request-1")
        assert await create(registry, instance("a-1"), "request-1") == first


async def test_a_creation_repeated_late_returns_the_instance_as_changed_since() -> None:
    async with running() as registry:
        first = await create(registry, instance("a-1"), "request-1")
        changed = await update(registry, instance("a-1", text="another's"), None, Precondition())
        assert await create(registry, instance("a-1"), "request-1") == changed != first


async def test_a_creation_that_is_repeated_brings_nothing_back_that_was_deleted_since() -> None:
    async with running() as registry:
        first = await create(registry, instance("a-1"), "request-1")
        await registry.writes.delete("a-1", ANY, soon())
        repeat = partial(registry.writes.create, instance("a-1"), "request-1", soon(), validate_only=False)
        assert (await repeat(repeated=True)).instance() == first
        assert registry.replica.cache.get("a-1") is None
        other = await create(registry, instance("a-1"), "request-2")
        assert (await repeat(repeated=True)).instance() == first, "whatever was created in its place"
        assert shown(registry, "a-1") == other
        await registry.writes.delete("a-1", ANY, soon())
        assert (await repeat()).instance().meta.version > other.meta.version, "who does not say so begins anew"


async def test_the_last_deleted_instances_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hq.memory.removed._MOST", 2)
    async with running() as registry:
        for name in ("a-1", "a-2", "a-3"):
            await create(registry, instance(name), "request-1")
            await registry.writes.delete(name, ANY, soon())
        removed = registry.replica.cache.removed
        assert [removed.get(name, "request-1") is not None for name in ("a-1", "a-2", "a-3")] == [False, True, True]


async def test_of_many_creations_of_one_id_one_wins() -> None:
    async with running() as registry:
        tries = (create(registry, instance("a-1", text=str(n))) for n in range(20))
        results = await asyncio.gather(*tries, return_exceptions=True)
        won = [r for r in results if isinstance(r, model.Instance)]
        assert len(won) == 1
        assert all(isinstance(r, AlreadyExists) for r in results if r is not won[0])
        assert shown(registry, "a-1") == won[0]


async def test_of_two_writers_with_one_version_one_wins_and_the_other_learns_the_current_one() -> None:
    async with running() as registry:
        demanded = Precondition((await create(registry, instance("a-1"))).meta.version)
        results = await asyncio.gather(
            *(update(registry, instance("a-1", text=str(n)), None, demanded) for n in range(2)), return_exceptions=True
        )
        won = [r for r in results if isinstance(r, model.Instance)]
        lost = [r for r in results if isinstance(r, VersionConflict)]
        assert len(won) == len(lost) == 1
        assert lost[0].current == won[0].meta.version


async def test_writers_without_a_precondition_all_succeed() -> None:
    async with running() as registry:
        await create(registry, instance("a-1"))
        revisions = [model.InstanceRevision(id=f"new-{n}") for n in range(10)]
        puts = (
            registry.writes.put_revision("a-1", r, ANY, soon(), clear_secrets=False, validate_only=False)
            for r in revisions
        )
        await asyncio.gather(*puts)
        assert {r.id for r in shown(registry, "a-1").spec.revision} == {"r1", *(r.id for r in revisions)}


async def test_a_report_is_no_conflict_for_a_writer_who_named_a_version() -> None:
    async with running() as registry:
        created = await create(registry, instance("a-1", revisions=("r1", "r2")))
        await ready_agent(registry, "a-1")
        entry = await registry.writes.delete_revision("a-1", "r2", Precondition(created.meta.version), soon())
        assert [r.id for r in entry.instance().spec.revision] == ["r1"]
        assert shown(registry, "a-1").status.ready.status == model.CONDITION_STATUS_TRUE


async def test_an_update_that_changes_nothing_writes_nothing() -> None:
    async with running() as registry:
        created = await create(registry, instance("a-1"))
        assert (await update(registry, instance("a-1"))).meta.version == created.meta.version


async def test_dropping_a_revision_drops_its_status() -> None:
    async with running() as registry:
        await create(registry, instance("a-1", revisions=("r1", "r2")))
        await ready_agent(registry, "a-1")
        await registry.writes.delete_revision("a-1", "r1", ANY, soon())
        status = shown(registry, "a-1").status
        assert [r.id for r in status.revision] == []
        assert status.ready.status != model.CONDITION_STATUS_TRUE


async def test_a_move_to_another_node_clears_statuses_and_fences_the_old_agent() -> None:
    async with running() as registry:
        await create(registry, instance("a-1"))
        await ready_agent(registry, "a-1")
        moved = await update(registry, instance("a-1", node="node-2"))
        assert not moved.status.revision
        with pytest.raises(Exception, match="is not on the reporter's node \\(node-1\\)"):
            await registry.reports.begin("a-1", "r1", "node-1", soon())


async def test_delete_removes_spec_status_and_secrets_and_a_recreated_instance_has_another_uid() -> None:
    async with running() as registry:
        made = instance("a-1")
        made.spec.revision[0].secret.add(name="pw", provider="vault", id="pw", environment_variable="PW")
        first = await create(registry, made)
        await registry.writes.delete("a-1", Precondition(first.meta.version), soon())
        cache = registry.replica.cache
        assert cache.get("a-1") is None
        assert cache.secrets("a-1") is None
        assert cache.stored_versions("a-1") == (0, 0)
        assert (await create(registry, made)).meta.uid != first.meta.uid


async def test_updating_or_deleting_a_missing_instance_is_not_found() -> None:
    async with running() as registry:
        with pytest.raises(NotFound):
            await update(registry, instance("a-1"))
        with pytest.raises(NotFound):
            await registry.writes.delete("a-1", ANY, soon())


async def test_a_version_of_another_epoch_is_refused() -> None:
    async with running() as registry:
        created = await create(registry, instance("a-1"))
        with pytest.raises(EpochChanged):
            await update(registry, instance("a-1", text="new"), None, Precondition(created.meta.version, "elsewhere"))


async def test_validate_only_stores_nothing_and_shows_what_would_be() -> None:
    async with running() as registry:
        entry = await registry.writes.create(instance("a-1"), "", soon(), validate_only=True)
        assert entry.instance().meta.id == "a-1"
        assert registry.replica.cache.get("a-1") is None
        created = await create(registry, instance("a-1"))
        would = await registry.writes.update(instance("a-1", text="new"), None, ANY, soon(), validate_only=True)
        assert would.instance().meta.annotations["text"] == "new"
        assert shown(registry, "a-1") == created


async def test_a_change_that_makes_the_whole_invalid_is_refused_and_names_the_field() -> None:
    async with running() as registry:
        await create(registry, instance("a-1"))
        twice = instance("a-1", revisions=("r1", "r1"))
        with pytest.raises(InvalidRequest, match=r"revision\[1\]\.id"):
            await update(registry, twice, ["spec.revision"])


async def test_apply_decides_separately_for_each_item() -> None:
    async with running() as registry:
        await create(registry, instance("same"))
        await create(registry, instance("changed"))
        bad = instance("bad")
        bad.spec.allocation.port.add(name="http", number=70_000)
        items = [instance("same"), instance("changed", text="new"), instance("new"), bad]
        results = await registry.apply.apply(items, "", soon(), validate_only=False)
        assert [r.outcome for r in results] == [
            pb.APPLY_OUTCOME_UNCHANGED,
            pb.APPLY_OUTCOME_UPDATED,
            pb.APPLY_OUTCOME_CREATED,
            pb.APPLY_OUTCOME_UNSPECIFIED,
        ]
        assert "instance[3].spec.allocation.port[0].number" in str(results[3].error)


async def test_apply_of_what_was_read_changes_nothing() -> None:
    async with running() as registry:
        await create(registry, instance("a-1"))
        await ready_agent(registry, "a-1")
        read = shown(registry, "a-1")
        [result] = await registry.apply.apply([read], "", soon(), validate_only=False)
        assert result.outcome == pb.APPLY_OUTCOME_UNCHANGED


async def test_at_the_stores_limit_only_writes_that_add_are_refused() -> None:
    async with running(max_store_bytes=4_000) as registry:
        created = await create(registry, instance("a-1", text="x" * 2_000), "request-1")
        await create(registry, instance("a-2", text="x" * 2_000))
        assert registry.replica.cache.stored_bytes >= 4_000
        with pytest.raises(StoreLimit) as refused:
            await create(registry, instance("a-4"))
        assert refused.value.metadata["max_bytes"] == "4000"
        with pytest.raises(StoreLimit):
            await registry.writes.create(instance("a-4"), "", soon(), validate_only=True)
        with pytest.raises(StoreLimit):
            await update(registry, instance("a-1", text="x" * 2_001))
        assert await create(registry, instance("a-1"), "request-1") == created, "a repeated creation adds nothing"
        await ready_agent(registry, "a-1")
        await update(registry, instance("a-1", text="y" * 2_000))
        await update(registry, instance("a-1", text="y" * 1_900))
        await registry.writes.delete("a-2", ANY, soon())
        await create(registry, instance("a-4"))


async def test_an_item_that_names_another_cluster_is_refused() -> None:
    async with running() as registry:
        other, own = instance("a-1"), instance("a-2")
        other.meta.cluster, own.meta.cluster = "another", registry.replica.config.cluster
        refused, applied = await registry.apply.apply([other, own], "", soon(), validate_only=False)
        assert 'instance[0].meta.cluster: names cluster "another"' in str(refused.error)
        assert applied.outcome == pb.APPLY_OUTCOME_CREATED


async def test_without_a_limit_nothing_is_refused_for_its_size() -> None:
    async with running(max_store_bytes=0) as registry:
        await create(registry, instance("a-1"))
