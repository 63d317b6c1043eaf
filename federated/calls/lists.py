"""Lists of instances over several locations, page by page, and counts of them, added up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from federated.calls.asking import Asking, asking
from federated.clock import FederatedClock
from federated.encoded import continuation, merge, scan
from federated.encoded.answers import ListAnswer, encoded_sources, last_good_source
from federated.encoded.merge import Cursor, PagePart
from federated.errors import NoAnswer
from federated.locations.location import LastGoodAnswer, Location
from federated.locations.locations import LocationAnswers, Locations, checked_answers
from hqapi.pieces import Pieces
from hqclient.errors import Violation
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call

_ID: Final = re.compile(r"\bfilter\.instance_id\[(\d+)\]")
_FRUITLESS_PAGES: Final = 100  # in a row; after that, the location changes faster than it can be read


class CompiledFind(NamedTuple):
    """A compiled FindInstancesRequest.

    Attributes:
        message: as it was parsed.
        base: what every location gets: without page_token and demands on single locations.
        key: its cache key: without any demands on freshness.
        is_plain: a whole list of all locations, of whatever freshness.
    """

    message: pb.FindInstancesRequest
    base: bytes
    key: bytes
    is_plain: bool

    @property
    def digest(self) -> str:
        """Digest of the filter."""
        return continuation.filter_digest(self.message.filter)


def compile_find(message: pb.FindInstancesRequest) -> CompiledFind:
    """Prepare a request. It is not changed afterwards. Raises InvalidRequest: too many values."""
    continuation.check_sizes(message.filter)
    base = pb.FindInstancesRequest()
    base.CopyFrom(message)
    for field in ("page_token", "read"):
        base.ClearField(field)
    if paths := base.field_mask.paths:
        # Without these, instances of several locations cannot be told apart.
        paths.extend(p for p in ("meta.id", "meta.cluster") if not {p, "meta", "*"}.intersection(paths))
    key = base.SerializeToString()
    if message.read.consistency:
        base.read.consistency = message.read.consistency
    return CompiledFind(message, base.SerializeToString(), key, _is_plain(message))


def _is_plain(message: pb.FindInstancesRequest) -> bool:
    read = message.read
    demands = read.min_version or read.epoch or read.consistency or read.require_trusted
    return not (message.page_token or message.HasField("field_mask") or message.filter.cluster or demands)


Remembered = Callable[[bytes, str], LastGoodAnswer | None]


class LocationPage(NamedTuple):
    """A location's part of a page, and its encoded source."""

    part: PagePart
    source: bytes


class Lists:
    """Asks locations for instances."""

    def __init__(
        self, locations: Locations, clock: FederatedClock, page_bytes: int, pieces: Pieces, remembered: Remembered
    ) -> None:
        """`pieces`: instances as JSON. `remembered`: a location's last list, by filter key and location name."""
        self._locations, self._clock, self._page_bytes = locations, clock, page_bytes
        self._pieces, self._remembered = pieces, remembered

    def ask(self, find: CompiledFind, call: Call) -> Asking:
        """The options of a request. Raises InvalidRequest, NoSuchEpoch, Unauthenticated."""
        return asking(self._locations, find.message.read, find.message.filter.cluster, call, self._clock)

    async def page(self, find: CompiledFind, ask: Asking) -> ListAnswer:
        """A page, in order of ids, then of locations, perhaps shorter than asked for. Raises ServiceError."""
        message = find.message
        cursors = continuation.cursors_of(message.page_token, find.digest) if message.page_token else {}
        done = {n: c for n in ask.names if (c := cursors.get(n, Cursor())).done is not None}
        at = {n: cursors.get(n, Cursor()) for n in ask.names if n not in done}
        answers = checked_answers(await self.everywhere(find, ask, at))
        ask.check(answers.silent, anybody=bool(answers.said))
        page = merge.page({n: t.part for n, t in answers.said.items()}, max(0, message.page_size), self._page_bytes)
        told = {n: c.done or b"" for n, c in done.items()} | {n: t.source for n, t in answers.said.items()}
        token = b""
        if not page.is_last:
            # A location that is silent now keeps its cursor: late instances are better than none.
            moved = {**{n: c for n, c in cursors.items() if n in ask.names}, **page.cursors}
            token = scan.delimited_field(2, continuation.page_token(find.digest, moved).encode())
        return ListAnswer(page.frames, token + encoded_sources(told, answers.silent), self._pieces)

    async def everywhere(
        self, find: CompiledFind, ask: Asking, cursors: Mapping[str, Cursor]
    ) -> LocationAnswers[LocationPage]:
        """Collect the answer of each of these locations for its cursor."""
        key = ask.asker() + find.key

        async def question(location: Location) -> LocationPage:
            cursor = cursors[location.name]
            for _ in range(_FRUITLESS_PAGES):
                told = await self._part(location, find, ask, key, cursor)
                if not merge.is_fruitless(told.part):
                    return told
                cursor = Cursor(told.part.next_page_token, cursor.after)
            raise NoAnswer("it changes faster than it can be listed")

        return await self._locations.ask(cursors, question)

    async def _part(
        self, location: Location, find: CompiledFind, ask: Asking, key: bytes, cursor: Cursor
    ) -> LocationPage:
        token = scan.delimited_field(4, cursor.token.encode()) if cursor.token else b""
        key += token  # in the cache of last good answers
        request = b"".join((find.base, token, ask.demand(location.name, 5)))
        needs_store = ask.needs_store(location.name, find.message.read)
        try:
            body = await location.read("FindInstances", request, ask.left_s(), ask.metadata, needs_store=needs_store)
        except NoAnswer as silence:
            kept = location.last_good.get("FindInstances", key)
            # The watch used the gateway's identity, so callers with a partition of their own must not see it.
            shown = None if token or ask.asker() else self._remembered(find.key, location.name)
            kept = shown if shown is not None and (kept is None or shown.at > kept.at) else kept
            if kept is None or not ask.may_be_old(location.name, find.message.read, find.message.filter):
                raise
            answer = merge.parse_list(kept.body)
            source = last_good_source(answer.source, self._clock.now() - kept.at, silence)
            return LocationPage(merge.part(cursor, answer), source)
        answer = _parse_list(body)
        location.health.record_source(answer.source)
        if ask.is_whole(location.name, find.message.filter):
            location.last_good.keep("FindInstances", key, body, location.health.seen_at)
        return LocationPage(merge.part(cursor, answer), answer.source)


def checked_id_answers(answers: LocationAnswers[LocationPage], fields: Sequence[str]) -> LocationAnswers[LocationPage]:
    """Return the answers to a filter of ids. Raises a location's ServiceError, with the caller's field for each id."""
    for error in answers.refused.values():
        error.message = _sent_as(fields, error.message)
        error.violations = tuple(Violation(_sent_as(fields, v.field), v.description) for v in error.violations)
    return checked_answers(answers)


def _sent_as(fields: Sequence[str], text: str) -> str:
    return _ID.sub(lambda found: fields[int(found[1])], text)


def _parse_list(body: bytes) -> merge.Listed:
    try:
        return merge.parse_list(body)
    except ValueError as error:
        raise NoAnswer(f"its response cannot be decoded: {error}") from error


_METHOD = "CountInstances"


class CountCalls:
    """Asks locations for counts."""

    def __init__(self, locations: Locations, clock: FederatedClock) -> None:
        self._locations, self._clock = locations, clock

    async def count(self, message: pb.CountInstancesRequest, call: Call) -> bytes:
        """The encoded answer: groups of one key added up. Raises ServiceError."""
        ask = asking(self._locations, message.read, message.filter.cluster, call, self._clock)

        async def question(location: Location) -> pb.CountInstancesResponse:
            return await self._ask(location, message, ask)

        answers = checked_answers(await self._locations.ask(ask.names, question))
        ask.check(answers.silent, anybody=bool(answers.said))
        groups = merge.sum_counts(answers.said.values())
        told = {name: answer.sources[-1].SerializeToString() for name, answer in answers.said.items()}
        return pb.CountInstancesResponse(groups=groups).SerializeToString() + encoded_sources(told, answers.silent)

    async def _ask(
        self, location: Location, message: pb.CountInstancesRequest, ask: Asking
    ) -> pb.CountInstancesResponse:
        plain = pb.CountInstancesRequest(filter=message.filter, group_by=message.group_by)
        key = ask.asker() + plain.SerializeToString()
        plain.read.consistency = message.read.consistency
        request = plain.SerializeToString() + ask.demand(location.name, 3)
        needs_store = ask.needs_store(location.name, message.read)
        try:
            body = await location.read(_METHOD, request, ask.left_s(), ask.metadata, needs_store=needs_store)
        except NoAnswer as silence:
            kept = location.last_good.get(_METHOD, key)
            if kept is None or not ask.may_be_old(location.name, message.read, message.filter):
                raise
            old = _parse_counts(kept.body)
            told = old.sources.pop().SerializeToString()
            source = last_good_source(told, self._clock.now() - kept.at, silence)
            old.sources.append(pb.Source.FromString(source))
            return old
        answer = _parse_counts(body)
        location.health.record_source(answer.sources[-1].SerializeToString())
        location.last_good.keep(_METHOD, key, body, self._clock.now())
        return answer


def _parse_counts(body: bytes) -> pb.CountInstancesResponse:
    try:
        answer = pb.CountInstancesResponse.FromString(body)
    except DecodeError as error:
        raise NoAnswer(f"its response cannot be decoded: {error}") from error
    if not answer.sources:
        raise NoAnswer("its response does not name its cluster")
    return answer
