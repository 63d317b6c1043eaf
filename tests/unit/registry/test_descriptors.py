"""GetRevision: who gets descriptors of secrets, and how a missing instance is reported."""

from __future__ import annotations

import pytest

from hq.errors import WrongNode
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotFound
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import create


async def test_secrets_are_served_to_the_agent_only() -> None:
    async with running() as registry:
        made = instance("a-1")
        made.spec.revision[0].secret.add(name="pw", provider="vault", id="canary-id", environment_variable="PW")
        created = await create(registry, made)
        assert created.spec.revision[0].secret_count == 1
        assert b"canary-id" not in created.SerializeToString()
        fetched = await registry.revisions.get("a-1", "r1", "node-1")
        assert fetched.revisions[0].secret[0].id == "canary-id"
        with pytest.raises(Exception, match="is not on the reporter's node \\(node-2\\)"):
            await registry.revisions.get("a-1", "r1", "node-2")


async def test_descriptors_can_be_read_without_a_node_before_the_instance_has_one() -> None:
    async with running() as registry:
        made = instance("a-1", node="")
        made.spec.revision[0].secret.add(name="pw", provider="vault", id="where", environment_variable="PW")
        await create(registry, made)
        fetched = await registry.revisions.get("a-1", "", "")
        assert [secret.id for secret in fetched.revisions[0].secret] == ["where"]
        with pytest.raises(WrongNode, match="has no node yet"):
            await registry.revisions.get("a-1", "", "node-1")


async def test_not_found_names_the_epoch() -> None:
    async with running() as registry:
        await create(registry, instance("a-1"))
        epoch = registry.freshness.source().epoch
        for instance_id, node in (("a-2", ""), ("a-1", "node-2")):
            with pytest.raises((NotFound, WrongNode)) as told:
                await registry.revisions.get(instance_id, "", node)
            assert told.value.metadata == {"epoch": epoch}
        with pytest.raises(NotFound) as told:
            await registry.reads.get("a-2", pb.ReadOptions(), None)
        assert told.value.metadata == {"epoch": epoch}
