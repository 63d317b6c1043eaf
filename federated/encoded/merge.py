"""Merging several locations' answers without decoding their instances. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from federated.encoded import scan
from hqpb.v1 import service_pb2


class InstanceItem(NamedTuple):
    """An instance in an answer: its id, and the encoded field `instances = 1`."""

    id: bytes
    frame: bytes


class Listed(NamedTuple):
    """An answer of GetInstance or FindInstances, taken apart; both number their fields alike.

    Attributes:
        source: the last encoded Source in it.
    """

    items: list[InstanceItem]
    next_page_token: str
    source: bytes


def parse_list(body: bytes) -> Listed:
    """Take an encoded answer apart. Raises Malformed."""
    items, at = _leading_items(body)
    token, source = "", b""
    for field in scan.fields(body, at):
        if field.number == 1 and field.kind == scan.DELIMITED:
            items.append(InstanceItem(instance_id(body, field.value_at, field.end), body[field.at : field.end]))
        elif field.number == 2 and field.kind == scan.DELIMITED:
            token = body[field.value_at : field.end].decode()
        elif field.number == 3 and field.kind == scan.DELIMITED:
            source = body[field.value_at : field.end]
    return Listed(items, token, source)


def _leading_items(body: bytes) -> tuple[list[InstanceItem], int]:
    """The instances that an answer begins with, and the offset behind them. This is the gateway's hottest loop."""
    items: list[InstanceItem] = []
    at, end = 0, len(body)
    while at + 4 < end and body[at] == 0x0A:
        # Lengths below 16 KiB take up to two bytes; longer ones take the slow path.
        if (length := body[at + 1]) < 0x80:
            value_at = at + 2
        elif (high := body[at + 2]) < 0x80:
            length, value_at = length & 0x7F | high << 7, at + 3
        else:
            length, value_at = scan.varint(body, at + 1, end)
        stop = value_at + length
        if stop > end:
            break
        items.append(InstanceItem(instance_id(body, value_at, stop), body[at:stop]))
        at = stop
    return items, at


def instance_id(data: bytes, at: int, end: int) -> bytes:
    """The bytes of meta.id of the encoded Instance in data[at:end]; empty if it has none. Raises Malformed."""
    # The fast path, for HQ's own encoding of short messages: meta first, and in it the id.
    if at + 5 < end and data[at] == 0x0A:
        id_at = at + 2 if data[at + 1] < 0x80 else at + 3 if data[at + 2] < 0x80 else end
        if id_at + 1 < end and data[id_at] == 0x0A and data[id_at + 1] < 0x80:
            return data[id_at + 2 : id_at + 2 + data[id_at + 1]]
    found = b""
    for meta in scan.fields(data, at, end):
        if meta.number == 1 and meta.kind == scan.DELIMITED:
            for field in scan.fields(data, meta.value_at, meta.end):
                if field.number == 1 and field.kind == scan.DELIMITED:
                    found = data[field.value_at : field.end]
    return found


# --- pages ------------------------------------------------------------------------------------------------------------


class Cursor(NamedTuple):
    """Where the list of one location continues.

    Attributes:
        token: the location's own page token; empty: its beginning.
        after: of that token's results, everything up to this id was sent; empty: nothing was.
        done: the location has no more; then this is the encoded Source of its last answer.
    """

    token: str = ""
    after: str = ""
    done: bytes | None = None


@dataclass(frozen=True, slots=True)
class PagePart:
    """One location's contribution to a page: its answer without what was already sent.

    Attributes:
        asked: the cursor that the request had.
    """

    asked: Cursor
    items: Sequence[InstanceItem]
    next_page_token: str
    source: bytes


def part(asked: Cursor, answer: Listed) -> PagePart:
    """Make the part of a page from the answer to a cursor."""
    after = asked.after.encode()
    items = [item for item in answer.items if item.id > after] if after else answer.items
    return PagePart(asked, items, answer.next_page_token, answer.source)


def is_fruitless(one: PagePart) -> bool:
    """Whether everything in it was sent before, and there is more: ask again with its next token."""
    return not one.items and bool(one.next_page_token)


class MergedPage(NamedTuple):
    """A page of all locations together, in order of ids, then of locations.

    Attributes:
        cursors: where each of the locations that answered continues.
    """

    frames: list[bytes]
    cursors: dict[str, Cursor]

    @property
    def is_last(self) -> bool:
        """Whether no location that answered has more."""
        return all(cursor.done is not None for cursor in self.cursors.values())


def page(parts: Mapping[str, PagePart], limit: int, max_bytes: int) -> MergedPage:
    """Merge. At most `limit` instances (0: any number) and about `max_bytes`, but at least one if there is one."""
    # A location with more pages may still send any id after its last one: nothing beyond that may be sent yet.
    horizons = [p.items[-1].id for p in parts.values() if p.next_page_token and p.items]
    horizon = min(horizons) if horizons else None
    rows = sorted(
        (item.id, name, item.frame)
        for name, one in parts.items()
        for item in one.items
        if horizon is None or item.id <= horizon
    )
    rows = rows[: _fitting(rows, limit or len(rows), max_bytes)]
    taken: dict[str, tuple[int, bytes]] = {}
    for id_, name, _ in rows:
        taken[name] = (taken.get(name, (0, b""))[0] + 1, id_)
    cursors = {name: _next_cursor(one, *taken.get(name, (0, b""))) for name, one in parts.items()}
    return MergedPage([frame for _, _, frame in rows], cursors)


def _fitting(rows: Sequence[tuple[bytes, str, bytes]], limit: int, max_bytes: int) -> int:
    size = 0
    for count, (_, _, frame) in enumerate(rows[:limit]):
        size += len(frame)
        if size > max_bytes and count:
            return count
    return min(limit, len(rows))


def _next_cursor(one: PagePart, count: int, last_id: bytes) -> Cursor:
    if count < len(one.items):
        return Cursor(one.asked.token, last_id.decode() if count else one.asked.after)
    return Cursor(one.next_page_token) if one.next_page_token else Cursor(done=one.source)


# --- counts -----------------------------------------------------------------------------------------------------------


def sum_counts(answers: Iterable[service_pb2.CountInstancesResponse]) -> list[service_pb2.InstanceCount]:
    """Counts added up by key, in order of keys."""
    groups: dict[str, service_pb2.InstanceCount] = {}
    for answer in answers:
        for group in answer.groups:
            sums = groups.setdefault(group.key, service_pb2.InstanceCount(key=group.key))
            sums.total += group.total
            sums.ready += group.ready
            sums.unknown += group.unknown
            sums.not_wanted += group.not_wanted
    return [groups[key] for key in sorted(groups)]
