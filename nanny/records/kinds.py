"""The kinds of records, and their keys."""

from __future__ import annotations

from typing import Final

from control import Controller, Kind
from nanny.rollout.views import Key
from nannypb.v1 import records_pb2

SERVICE: Final = Kind("service", records_pb2.ServiceRecord)
SNAPSHOT: Final = Kind("snapshot", records_pb2.SnapshotRecord)
CHUNK: Final = Kind("chunk", records_pb2.ChunkRecord)
ACTION: Final = Kind("action", records_pb2.ActionRecord)
INSTANCE_TARGET: Final = Kind("target", records_pb2.InstanceTargetRecord)
ROLLOUT: Final = Kind("rollout", records_pb2.RolloutRecord)
HISTORY: Final = Kind("history", records_pb2.HistoryRecord)
EVENTS: Final = "service"


def declare(controller: Controller) -> None:
    """Follow all kinds from the start: a kind declared after the store was listed would look empty."""
    controller.records(SERVICE)
    controller.records(SNAPSHOT)
    controller.records(CHUNK)
    controller.records(ACTION)
    controller.records(INSTANCE_TARGET)
    controller.records(ROLLOUT)
    controller.records(HISTORY)


def of_snapshot(service: str, snapshot: str) -> str:
    """The key of a snapshot. Ids have no slash, so no key of a service begins like another service's."""
    return f"{service}/{snapshot}"


def of_chunk(service: str, snapshot: str, number: int) -> str:
    return f"{service}/{snapshot}/{number:04d}"


def of_instance(service: str, key: Key) -> str:
    return f"{service}/{key[0]}/{key[1]}"


def instance_of(name: str) -> Key:
    """The instance that `of_instance` named."""
    _, location, instance = name.split("/", 2)
    return location, instance
