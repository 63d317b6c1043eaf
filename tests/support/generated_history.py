"""Histories of any length that keep every promise, made without HQ: to see what the checker costs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.checker.history import OK, STRONG, Event, Item, Op, Range, Raw, Read, Seen, Stored, Watched, Write

_STEP_NS = 1_000_000
_PAGE = 20


class _Store:
    """Instances that are created and updated, one write per revision."""

    def __init__(self, instances: int) -> None:
        self.revision = 1
        self.live: dict[str, tuple[Stored, Stored]] = {}
        self._ids = [f"i-{number:06}" for number in range(instances)]

    def write(self, rng: random.Random, marker: str) -> tuple[str, int, Raw]:
        """A creation or an update: the id, the version it replaced, and what etcd says."""
        instance_id = rng.choice(self._ids)
        self.revision += 1
        spec, status = self.live.get(instance_id, (None, None))
        created = spec.created if spec else self.revision
        uid = f"{self.revision:x}" if spec is None else spec.marks[0]
        marks = uid, f"{marker};r1=", f"s-{int(instance_id[2:]) // _PAGE}", "node-1"
        new = Stored("put", f"spec/{instance_id}", self.revision, created, marks)
        events = [new]
        if status is None:
            status = Stored("put", f"status/{instance_id}", self.revision, self.revision, (uid, "", "F", ""))
            events.append(status)
        self.live[instance_id] = new, status
        return instance_id, spec.modified if spec else 0, Raw(self.revision, tuple(events))

    def item(self, instance_id: str) -> Item:
        spec, status = self.live[instance_id]
        return Item(spec.modified, status.modified, spec.marks[1], status.marks[1])

    def service(self, number: int) -> dict[str, Item]:
        ids = self._ids[number * _PAGE : (number + 1) * _PAGE]
        return {instance_id: self.item(instance_id) for instance_id in ids if instance_id in self.live}


def generated(events: int, seed: int = 1) -> Iterator[Event]:
    """About so many events: a third each of writes, of etcd's revisions and of reads; one watch sees all."""
    rng, instances = random.Random(seed), max(100, events // 100)
    store, number, at_ns = _Store(instances), 0, 0
    yield _watched(number, at_ns, Watched("all", "OPENED"))
    yield _watched(number, at_ns, Watched("all", "SYNCED", 1, token=True))
    while number < events:
        number, at_ns = number + 4, at_ns + _STEP_NS
        marker = f"m{number}"
        instance_id, replaced, raw = store.write(rng, marker)
        op, write = ("update" if replaced else "create"), Write(marker, replaced, store.revision)
        yield Op(number, f"writer-{number % 64}", op, at_ns, at_ns + _STEP_NS // 2, OK, instance_id, write=write)
        yield raw
        item = store.item(instance_id)
        seen = Seen(
            "put", instance_id, raw.revision, item.status_version, item.spec_mark, item.status_mark, item.version
        )
        yield _watched(number + 1, at_ns, Watched("all", "EVENTS", raw.revision, token=True, events=(seen,)))
        service = rng.randrange(instances // _PAGE)
        wanted = {"service_id": f"s-{service}"}
        read = Read(replaced, STRONG, store.revision, items=store.service(service), wanted=wanted)
        at_ns += _STEP_NS
        yield Op(number + 2, f"reader-{number % 64}", "find", at_ns, at_ns + _STEP_NS // 2, OK, read=read)
    records = tuple(stored for pair in store.live.values() for stored in pair)
    yield Range(store.revision, records, gapless=True)


def _watched(number: int, at_ns: int, message: Watched) -> Op:
    return Op(number, "watcher", "watch", at_ns, at_ns, OK, watch=message)
