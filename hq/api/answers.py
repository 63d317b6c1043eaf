"""Answers made of frames: bytes are copied together, never encoded; JSON and masked frames are made once and kept."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hq.memory import frames
from hq.memory.entry import frames_of
from hq.memory.joined_lists import PLAIN, EncodedList
from hq.registry import watch_messages
from hq.registry.reads import Found
from hq.registry.source import Source
from hq.registry.watch_messages import WatchMessage
from hq.validation.typed_fields import clean_times, is_map
from hqapi.pieces import Pieces
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json

M = TypeVar("M", bound=Message)
Tree = dict[str, "Tree"]  # by field name; an empty one stands for the whole field


class Mask:
    """The fields that a reader asked for. Unlike in protobuf's masks, paths lead through lists, to all elements."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tree: Tree = {}
        # Short paths first: what a path names as a whole is not narrowed down by a longer one.
        for path in sorted(paths, key=len):
            _add(self._tree, path.split("."))

    def masked_copy(self, message: M) -> M:
        """A copy that holds only these fields."""
        return _pruned_copy(message, self._tree)


def _add(tree: Tree, names: list[str]) -> None:
    *above, last = names
    for name in above:
        if tree.get(name) == {}:
            return  # a shorter path names all of this
        tree = tree.setdefault(name, {})
    tree[last] = {}


def _pruned_copy(message: M, tree: Tree) -> M:
    pruned = type(message)()
    for field, value in message.ListFields():
        below = tree.get(field.name)
        if below is None:
            continue
        if below:
            _set_pruned(pruned, field, value, below)
        else:
            _set_whole(pruned, field, value)
    return pruned


def _set_pruned(target: Message, field: FieldDescriptor, value: Any, tree: Tree) -> None:
    into = getattr(target, field.name)
    if field.is_repeated:
        into.extend(_pruned_copy(item, tree) for item in value)
    else:
        into.CopyFrom(_pruned_copy(value, tree))


def _set_whole(target: Message, field: FieldDescriptor, value: Any) -> None:
    if is_map(field) or field.is_repeated:
        getattr(target, field.name).MergeFrom(value)
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


_LIST_SOURCES: Final = b"\x1a"


class SourceCodec:
    """Sources in both encodings. Many answers share a source, which is encoded once."""

    def __init__(self) -> None:
        self._last: Source | None = None
        self._encoded: dict[bytes, bytes] = {}
        self._json = b""

    def proto(self, source: Source, tag: bytes = _LIST_SOURCES) -> bytes:
        """The answer encoded as the field with this tag."""
        if source is not self._last:
            self._turn_to(source)
        encoded = self._encoded.get(tag)
        if encoded is None:
            encoded = self._encoded[tag] = frames.delimited_field(tag, source.message().SerializeToString())
        return encoded

    def json(self, source: Source) -> bytes:
        if source is not self._last:
            self._turn_to(source)
        if not self._json:
            self._json = to_json(source.message())
        return self._json

    def _turn_to(self, source: Source) -> None:
        self._last, self._encoded, self._json = source, {}, b""


class FramesAnswer:
    """Instances, a page token and a source: answers of GetInstance and FindInstances.

    Both messages number their fields alike, so that one splice serves both; in JSON `single` says which it is.
    """

    __slots__ = ("_codec", "_found", "_frames", "_mask", "_pieces", "_single")

    def __init__(self, found: Found, pieces: Pieces, codec: SourceCodec, *, single: bool = False) -> None:
        self._found, self._pieces, self._codec, self._single = found, pieces, codec, single
        self._mask: tuple[str, ...] = ()
        self._frames = found.frames

    async def with_mask(self, mask: tuple[str, ...]) -> FramesAnswer:
        """Return itself, now with these fields of its instances only; in slices, as each new frame takes some 10 µs."""
        self._mask = mask
        listing = self._found.listing
        if listing is None or mask not in listing.forms:
            self._frames = await self._masked_frames()
        return self

    def proto(self) -> bytes:
        listing = self._found.listing
        if listing is None or self._mask:
            return self._answer(self._mask, lambda: self._frames, self._proto_tail)
        listing.note.asked += 1
        return listing.forms[PLAIN].answer(self._found.source, self._proto_tail)  # almost always

    def json(self) -> bytes | Awaitable[bytes]:
        listing = self._found.listing
        if listing is not None and (_JSON, self._mask) in listing.forms:
            return self._json_answer([])
        if self._mask:
            return self._encode_json()
        encoded = self._pieces.at_once(_JSON, frames_of(self._found.entries))
        return self._encode_json() if encoded is None else self._json_answer(encoded)

    async def _encode_json(self) -> bytes:
        shown = await self._masked_frames() if self._mask else frames_of(self._found.entries)
        return self._json_answer(await self._pieces.all(_JSON, _frame_as_json, shown))

    async def _masked_frames(self) -> list[bytes]:
        apply = Mask(self._mask).masked_copy
        return await self._pieces.all(
            self._mask,
            lambda frame: _instance_frame(apply(instance_pb2.Instance.FromString(frames.body(frame)))),
            frames_of(self._found.entries),
        )

    def _answer(self, form: Hashable, parts: Callable[[], Sequence[bytes]], tail: Callable[[], bytes]) -> bytes:
        listing = self._found.listing
        if listing is None:
            return b"".join((*parts(), tail()))
        joined = listing.form(form)
        if joined is None:
            joined = EncodedList(parts())
            listing.add(form, joined)
        return joined.answer(self._found.source, tail)

    def _proto_tail(self) -> bytes:
        token = (
            frames.delimited_field(b"\x12", self._found.next_page_token.encode())
            if self._found.next_page_token
            else b""
        )
        return token + self._codec.proto(self._found.source)

    def _json_answer(self, encoded: list[bytes]) -> bytes:
        return self._answer((_JSON, self._mask), lambda: self._json_parts(encoded), self._json_tail)

    def _json_parts(self, encoded: list[bytes]) -> Sequence[bytes]:
        if not encoded:
            return (b"{",)
        # Both ends are put on the first and the last, so that the bulk is copied once.
        encoded[0] = (b'{"instance":' if self._single else b'{"instances":[') + encoded[0]
        encoded[-1] += b"," if self._single else b"],"
        return (b",".join(encoded),)

    def _json_tail(self) -> bytes:
        token = self._found.next_page_token
        tail = b'"nextPageToken":' + json.dumps(token).encode() + b"," if token else b""
        return tail + b'"sources":[' + self._codec.json(self._found.source) + b"]}"


_JSON = "json"


def _frame_as_json(frame: bytes) -> bytes:
    return readable_json(instance_pb2.Instance.FromString(frames.body(frame)))


def _instance_frame(instance: instance_pb2.Instance) -> bytes:
    return frames.delimited_field(frames.FRAME_TAG, instance.SerializeToString())


class WatchAnswer:
    """One message of a watch. It is encoded once: then its events are gone."""

    __slots__ = ("_codec", "_message", "_pieces")

    def __init__(self, message: WatchMessage, pieces: Pieces, codec: SourceCodec) -> None:
        self._message, self._pieces, self._codec = message, pieces, codec

    def proto(self) -> bytes:
        m = self._message
        token = frames.delimited_field(watch_messages.TOKEN, m.token.encode()) if m.token else b""
        encoded = [watch_messages.KINDS[m.kind], *m.events, token, self._codec.proto(m.source, watch_messages.SOURCES)]
        if m.reason:
            encoded.append(frames.delimited_field(b"\x2a", m.reason.encode()))
        if m.collapsed:
            encoded.append(b"\x30\x01")
        m.events.clear()
        return b"".join(encoded)

    async def json(self) -> bytes:
        m = self._message
        head = {"kind": service_pb2.WatchKind.Name(m.kind), "resumeToken": m.token, "reason": m.reason}
        told = json.dumps({name: value for name, value in head.items() if value}, ensure_ascii=False).encode()[:-1]
        encoded = await self._pieces.all(_JSON, _event_as_json, m.events)
        events = b',"events":[' + b",".join(encoded) + b"]" if encoded else b""
        m.events.clear()
        collapsed = b',"collapsed":true' if m.collapsed else b""
        return told + events + collapsed + b',"sources":[' + self._codec.json(m.source) + b"]}"


def _event_as_json(event: bytes) -> bytes:
    (message,) = service_pb2.WatchInstancesResponse.FromString(event).events
    return readable_json(message)


def readable_json(message: Message) -> bytes:
    """`to_json`, with times that JSON cannot express replaced by the nearest one that it can."""
    try:
        return to_json(message)
    except (ValueError, json_format.Error):
        clean_times(message)
        return to_json(message)


class Answers:
    """Makes answers, and keeps what they share.

    Attributes:
        complete: an answer of FindInstances, or of GetInstance (`single`), with everything.
    """

    def __init__(self, json_bytes: int) -> None:
        """`json_bytes`: of what is kept as JSON; a fifth of it are events of watches."""
        self._codec = SourceCodec()
        self._pieces, self._events = Pieces(json_bytes * 4 // 5), Pieces(json_bytes // 5)
        self.complete = partial(FramesAnswer, pieces=self._pieces, codec=self._codec)

    async def find_answer(self, found: Found, mask: tuple[str, ...], *, single: bool = False) -> FramesAnswer:
        """An answer of FindInstances, or of GetInstance (`single`); an empty mask asks for everything."""
        answer = self.complete(found, single=single)
        return await answer.with_mask(mask) if mask else answer

    def watch(self, message: WatchMessage) -> WatchAnswer:
        """A message of WatchInstances."""
        return WatchAnswer(message, self._events, self._codec)
