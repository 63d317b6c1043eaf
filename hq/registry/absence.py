"""Answers that make a caller stop say in which epoch they hold: a store that was emptied knows nobody."""

from __future__ import annotations

from hq.replica import Replica
from serving.errors import HqError, NotFound, Stop


def of_epoch(error: HqError, replica: Replica) -> HqError:
    """The error, saying in whose history there is no such thing."""
    if isinstance(error, NotFound | Stop):
        error.epoch = replica.cache.epoch
    return error
