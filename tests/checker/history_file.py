"""A history as a file: lines of JSON, packed if its name ends in .gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TextIO, cast

from tests.checker.history import Cut, Event, Fault, Final, Item, Op, Range, Raw, Read, Seen, Stored, Watched, Write

_KINDS: dict[str, type[Event]] = {"raw": Raw, "range": Range, "cut": Cut, "fault": Fault, "final": Final}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def read_history(path: Path) -> Iterator[Event]:
    """The events of a file, as they stand there; `.gz` is unpacked."""
    with _opened(path, "rt") as file:
        for line in file:
            yield decoded(json.loads(line))


class Recorder:
    """Writes a history, line by line; several threads must take turns."""

    def __init__(self, path: Path) -> None:
        self._file = _opened(path, "wt")
        self._next = 0

    def number(self) -> int:
        """A number for the next Op."""
        self._next += 1
        return self._next

    def add(self, event: Event) -> None:
        self._file.write(json.dumps(encoded(event), separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def write_history(path: Path, events: Iterable[Event]) -> None:
    recorder = Recorder(path)
    for event in events:
        recorder.add(event)
    recorder.close()


def encoded(event: Event) -> dict[str, Any]:
    """The event as JSON; fields at their defaults are left out."""
    kind = _NAMES.get(type(event))
    return ({kind: True} if kind else {}) | _plain(event)


def decoded(line: dict[str, Any]) -> Event:
    """The event of a line of JSON."""
    kind = next((name for name in _KINDS if line.get(name) is True), None)
    if kind is None:
        return _op(line)
    del line[kind]
    if kind == "raw":
        return Raw(line["revision"], _stored(line["events"]), line.get("seen_ns", 0))
    if kind == "range":
        return Range(line["revision"], _stored(line["records"]), line.get("gapless", False))
    if kind == "cut":
        return Cut(**line)
    if kind == "fault":
        return Fault(**line)
    return Final(line["replica"], line["version"], line["epoch"], _items(line["items"]))


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for each in fields(value):
        held = getattr(value, each.name)
        if held is None or held == each.default or (held == {} and each.name != "items"):
            continue
        plain[each.name] = _plain(held) if isinstance(held, Write | Read | Watched) else held
    return plain


def _op(line: dict[str, Any]) -> Op:
    line.setdefault("return_ns", None)
    if (write := line.get("write")) is not None:
        line["write"] = Write(**write)
    if (read := line.get("read")) is not None:
        totals = read.pop("totals", None)
        line["read"] = Read(**read | {"items": _items(read.get("items", {})), "totals": totals and tuple(totals)})
    if (watch := line.get("watch")) is not None:
        line["watch"] = Watched(**watch | {"events": tuple(Seen(*seen) for seen in watch.get("events", ()))})
    return Op(**line)


def _items(items: dict[str, list[Any]]) -> dict[str, Item]:
    return {instance_id: Item(*item) for instance_id, item in items.items()}


def _stored(events: list[list[Any]]) -> tuple[Stored, ...]:
    return tuple(Stored(kind, key, modified, created, tuple(marks)) for kind, key, modified, created, marks in events)


def _opened(path: Path, mode: Literal["rt", "wt"]) -> TextIO:
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, mode))
    return path.open(mode)
