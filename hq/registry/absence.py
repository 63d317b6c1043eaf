"""Answers that make a caller stop say in which epoch they hold: a store that was emptied knows nobody."""

from __future__ import annotations

from hq.errors import Stop, WrongNode
from hq.memory.entry import Entry
from hq.replica import Replica
from serving.errors import NotFound, ServiceError


def of_epoch(error: ServiceError, replica: Replica) -> ServiceError:
    """The error, saying in whose history there is no such thing."""
    if isinstance(error, NotFound | Stop):
        error.epoch = replica.cache.epoch
    return error


def of_agent(error: ServiceError, replica: Replica, instance_id: str) -> ServiceError:
    """The same for an agent that reports the instance: it may know another history of the store."""
    if isinstance(error, NotFound):
        replica.strangers.heard(instance_id, replica.clock.now())
    return of_epoch(error, replica)


def not_on(entry: Entry, node: str) -> WrongNode:
    """The instance does not live there. Where it does is for those to read who may."""
    where = "is on another node" if entry.traits.node else "has no node yet"
    return WrongNode(entry.traits.id, f"instance {entry.traits.id} {where}, not on {node or 'none'}")
