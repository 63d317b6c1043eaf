"""What an answer of HQ means for the life of an instance: go on, start afresh, or free everything. No I/O.

The danger is an HQ that has lost its memory (a store restored or replaced): it knows nobody, and every agent of the
cloud that believed it would wipe its instance. So an absence counts only within the epoch that knew the instance.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Meaning(enum.Enum):
    """What to make of an answer."""

    GO_ON = "the known instance, or the first one seen"
    NEW_LIFE = "deleted and created anew under the same id: another instance"
    GONE = "deleted"
    MOVED = "it is on another node now"
    WAIT = "not there yet"
    DOUBT = "HQ does not know it, but it is not the HQ history that knew it"


@dataclass(frozen=True, slots=True)
class Life:
    """Which life of an instance, in which history of HQ's store."""

    uid: int
    epoch: str


def of_presence(known: Life | None, found: Life) -> Meaning:
    """HQ has the instance, on this node."""
    if known is None or not known.uid or known.uid == found.uid:
        return Meaning.GO_ON
    # A restored or replaced store gives new uids to the instances that are put back: the same to us.
    return Meaning.NEW_LIFE if known.epoch == found.epoch else Meaning.GO_ON


def of_absence(known: Life | None, epoch: str, *, elsewhere: bool) -> Meaning:
    """HQ has no such instance, or (`elsewhere`) has it on another node; `epoch` is the history that says so."""
    if known is None:
        return Meaning.WAIT
    if known.epoch != epoch:
        return Meaning.DOUBT
    return Meaning.MOVED if elsewhere else Meaning.GONE
