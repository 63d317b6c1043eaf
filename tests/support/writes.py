"""Writes of a test, straight into the use cases."""

from __future__ import annotations

import asyncio

from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model

ANY = Precondition()


def soon() -> float:
    """In real time, or in virtual time where the test runs in that."""
    return asyncio.get_running_loop().time() + 5


async def create(registry: Registry, made: model.Instance, request_id: str = "") -> model.Instance:
    return (await registry.writes.create(made, request_id, soon(), validate_only=False)).instance()


async def update(
    registry: Registry, made: model.Instance, mask: list[str] | None = None, demanded: Precondition = ANY
) -> model.Instance:
    return (await registry.writes.update(made, mask, demanded, soon(), validate_only=False)).instance()


def shown(registry: Registry, instance_id: str) -> model.Instance:
    entry = registry.replica.cache.get(instance_id)
    assert entry is not None
    return entry.instance()
