"""Instances that somebody waits for, and which of them are where they shall be. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hqclient.watch_items import Changes, Interrupted, Key, Resync, Shown, SnapshotPart, Synced, WatchItem
from hqctl.output.rows import readiness
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


@dataclass(slots=True)
class Awaited:
    """Which instances are where they shall be.

    Attributes:
        holds: what is waited for; None: that they are gone.
        named: ids that are waited for; empty: whatever the watch shows.
        met: those that are there.
        trouble: why HQ is not heard at the moment, so that all this may be old; empty: it is.
    """

    holds: Callable[[instance_pb2.Instance], bool] | None
    named: frozenset[str]
    shown: Shown = field(default_factory=Shown)
    met: set[Key] = field(default_factory=set)
    trouble: str = ""

    def took(self, item: WatchItem) -> list[str]:
        """Something came: the ids of those that have just got there."""
        self.shown.took(item)
        self.trouble = item.error.message if isinstance(item, Interrupted) else ""
        match item:
            case SnapshotPart(instances):
                return [i.meta.id for i in instances if self._put(i)]
            case Changes(events):
                return [told for event in events if (told := self._changed(event))]
            case Synced() if self.holds is None and self.shown.is_whole:
                return sorted(self._absent())
            case Resync():
                self.met &= self.shown.instances.keys()
        return []

    def missing(self) -> dict[str, str]:
        """Those that are not there yet, with the state they are in."""
        waiting = {i.meta.id: readiness(i) for key, i in self.shown.instances.items() if key not in self.met}
        absent = self._absent() if self.holds is not None else ()
        return {**dict.fromkeys(absent, "not there"), **waiting}

    def is_done(self) -> bool:
        """Everything is known, of every location, and as it shall be. Nothing is never ready."""
        something = self.holds is None or bool(self.shown.instances)
        return self.shown.is_whole and something and not self.missing()

    def _absent(self) -> frozenset[str]:
        return self.named - {instance_id for _, instance_id in self.shown.instances}

    def _put(self, instance: instance_pb2.Instance) -> bool:
        """Whether it has just got there."""
        key = (instance.meta.cluster, instance.meta.id)
        if self.holds is None or not self.holds(instance):
            self.met.discard(key)
            return False
        is_new = key not in self.met
        self.met.add(key)
        return is_new

    def _changed(self, event: pb.WatchEvent) -> str:
        """The id of the one that has just got there; empty: none has."""
        if event.HasField("put"):
            return event.put.meta.id if self._put(event.put) else ""
        gone = event.delete if event.HasField("delete") else event.left
        self.met.discard((gone.cluster, gone.id))
        return gone.id if self.holds is None else ""
