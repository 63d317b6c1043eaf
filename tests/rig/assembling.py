"""One history out of what the witnesses and the clients wrote down."""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hq.keys import HqKeys
from store.port import KeyChange, Record
from tests.checker.history import Cut, Event, Final, Range
from tests.checker.history_file import read_history, write_history
from tests.checker.marks import raw_of, stored_of


def assemble(
    target: Path, raws: Sequence[Path], cuts: Sequence[Cut], calls: Path, finals: Sequence[Final], prefix: str
) -> None:
    """Write the history: etcd's own of each life of the store, with the cuts between them, then calls and finals."""
    write_history(target, _events(raws, cuts, calls, finals, HqKeys(prefix)))


def anomalies(raws: Sequence[Path]) -> list[str]:
    """What etcd sent twice or out of order, by words; known of 3.4 after partitions."""
    lines = (line for path in raws for line in _lines(path))
    return [f"revision {line['revision']} after {line['seen']}" for line in lines if "raw_anomaly" in line]


def _events(
    raws: Sequence[Path], cuts: Sequence[Cut], calls: Path, finals: Sequence[Final], keys: HqKeys
) -> Iterator[Event]:
    for number, path in enumerate(raws):
        if number:
            yield cuts[number - 1]
        yield from _raw_events(path, keys)
    yield from read_history(calls)
    yield from finals


def _raw_events(path: Path, keys: HqKeys) -> Iterator[Event]:
    for line in _lines(path):
        if "raw" not in line:
            continue
        changes = [_change(event) for event in line["events"]]
        if "final" in line:
            records = [Record(c.key, c.value or b"", c.created, c.revision) for c in changes]
            yield Range(line["revision"], tuple(stored_of(record, keys) for record in records))
        elif "listing" in line:
            by_revision: defaultdict[int, list[KeyChange]] = defaultdict(list)
            for change in changes:
                by_revision[change.revision].append(change)
            for revision in sorted(by_revision):
                yield raw_of(revision, by_revision[revision], keys, line["seen_ns"])
        else:
            yield raw_of(line["revision"], changes, keys, line["seen_ns"])


def _change(event: list[Any]) -> KeyChange:
    kind, key, modified, created, value = event
    return KeyChange(key.encode(), base64.b64decode(value) if kind == "put" else None, created, modified)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
