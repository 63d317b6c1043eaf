"""Answers made of frames: bytes are copied together, never encoded; JSON is cached, masks decode."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hq.api.json_cache import EventJson, InstanceJson, readable_json
from hq.memory import frames
from hq.registry.reads import Found
from hq.registry.source import Source
from hq.registry.watches import Message as WatchMessage
from hq.validation.typed_fields import is_map
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json

M = TypeVar("M", bound=Message)
Tree = dict[str, "Tree"]  # by field name; an empty one stands for the whole field


class Mask:
    """The fields that a reader asked for. Unlike protobuf's own, its paths lead through lists, to all elements."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._tree: Tree = {}
        # Short paths first: what a path names as a whole is not narrowed down by a longer one.
        for path in sorted(paths, key=len):
            _add(self._tree, path.split("."))

    def applied(self, message: M) -> M:
        """A copy that holds no other fields."""
        return _pruned(message, self._tree)


def _add(tree: Tree, names: list[str]) -> None:
    *above, last = names
    for name in above:
        if tree.get(name) == {}:
            return  # a shorter path names all of this
        tree = tree.setdefault(name, {})
    tree[last] = {}


def _pruned(message: M, tree: Tree) -> M:
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
        into.extend(_pruned(item, tree) for item in value)
    else:
        into.CopyFrom(_pruned(value, tree))


def _set_whole(target: Message, field: FieldDescriptor, value: Any) -> None:
    if is_map(field) or field.is_repeated:
        getattr(target, field.name).MergeFrom(value)
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


T = TypeVar("T")

_SLICE_S = 0.005  # so long something is made before the loop gets a turn
_LIST_SOURCES, _WATCH_SOURCES = b"\x1a", b"\x22"


class SourceCodec:
    """Sources in both encodings. Many answers share one; it is encoded once."""

    def __init__(self) -> None:
        self._last: Source | None = None
        self._encoded: dict[bytes, bytes] = {}
        self._json = b""

    def proto(self, source: Source, tag: bytes = _LIST_SOURCES) -> bytes:
        """As the field of this tag."""
        self._turn_to(source)
        encoded = self._encoded.get(tag)
        if encoded is None:
            encoded = self._encoded[tag] = frames.delimited(tag, source.message().SerializeToString())
        return encoded

    def json(self, source: Source) -> bytes:
        self._turn_to(source)
        if not self._json:
            self._json = to_json(source.message())
        return self._json

    def _turn_to(self, source: Source) -> None:
        if source is not self._last:
            self._last = source
            self._encoded, self._json = {}, b""


class FramesAnswer:
    """Instances, a page token and a source: answers of GetInstance and FindInstances.

    Both messages number their fields alike, so that one splice serves both; in JSON `single` says which it is.
    """

    __slots__ = ("_codec", "_found", "_json_cache", "_single")

    def __init__(
        self,
        found: Found,
        json_cache: InstanceJson,
        codec: SourceCodec,
        *,
        single: bool = False,
    ) -> None:
        self._found = found
        self._json_cache, self._codec, self._single = json_cache, codec, single

    def proto(self) -> bytes:
        listing, source = self._found.listing, self._found.source
        if listing is None:
            return self._proto_of(self._found.frames)
        # Under load many answers are the same to the byte, for as long as they share a source.
        if listing.answer[0] is not source:
            listing.answer = source, self._proto_of(self._found.frames)
        return listing.answer[1]

    def json(self) -> bytes | Awaitable[bytes]:
        entries, listing = self._found.entries, self._found.listing
        if listing is not None and listing.json:
            return self._json_of([listing.json])
        encoded = [one for entry in entries if (one := entry.json)]
        return self._joined(encoded) if len(encoded) == len(entries) else self._made()

    async def _made(self) -> bytes:
        return self._joined(await in_slices(self._json_cache.get, self._found.entries))

    def _joined(self, encoded: list[bytes]) -> bytes:
        listing = self._found.listing
        if listing is not None and encoded:
            listing.json = b",".join(encoded)
        return self._json_of(encoded)

    def _proto_of(self, instances: Sequence[bytes]) -> bytes:
        token = frames.delimited(b"\x12", self._found.next_page_token.encode()) if self._found.next_page_token else b""
        return b"".join((*instances, token, self._codec.proto(self._found.source)))

    def _json_of(self, instances: list[bytes]) -> bytes:
        token = self._found.next_page_token
        tail = b'"nextPageToken":' + json.dumps(token).encode() + b"," if token else b""
        tail += b'"sources":[' + self._codec.json(self._found.source) + b"]}"
        if not instances:
            return b"{" + tail
        # Both ends are put on the first and the last, so that the bulk is copied once.
        instances[0] = (b'{"instance":' if self._single else b'{"instances":[') + instances[0]
        instances[-1] += (b"," if self._single else b"],") + tail
        return b",".join(instances)


class MaskedAnswer(FramesAnswer):
    """The same with some fields of the instances only. `prepared` makes it: masks are the one read that decodes."""

    __slots__ = ("_masked",)

    _masked: bytes  # frames, joined

    async def prepared(self, mask: Sequence[str]) -> MaskedAnswer:
        """Itself, with the mask applied: in slices, since this takes some 10 µs per instance."""
        listing = self._found.listing
        if listing is not None and listing.masked[0] == tuple(mask):
            self._masked = listing.masked[1]
            return self
        apply = Mask(mask).applied
        self._masked = b"".join(await in_slices(lambda entry: _framed(apply(entry.instance())), self._found.entries))
        if listing is not None:
            listing.masked = tuple(mask), self._masked
        return self

    def proto(self) -> bytes:
        return self._proto_of([self._masked])

    async def json(self) -> bytes:
        instances = service_pb2.FindInstancesResponse.FromString(self._masked).instances
        return self._json_of(await in_slices(readable_json, instances))


def _framed(instance: instance_pb2.Instance) -> bytes:
    return frames.delimited(frames.FRAME_TAG, instance.SerializeToString())


class WatchAnswer:
    """One message of a watch. It is encoded once: then its events are gone."""

    __slots__ = ("_codec", "_json_cache", "_message")

    def __init__(self, message: WatchMessage, json_cache: EventJson, codec: SourceCodec) -> None:
        self._message, self._json_cache, self._codec = message, json_cache, codec

    def proto(self) -> bytes:
        m = self._message
        encoded = b"".join(
            (
                b"\x08",
                frames.varint(m.kind),
                *m.events,
                frames.delimited(b"\x1a", m.token.encode()) if m.token else b"",
                self._codec.proto(m.source, _WATCH_SOURCES),
                frames.delimited(b"\x2a", m.reason.encode()) if m.reason else b"",
                b"\x30\x01" if m.collapsed else b"",
            )
        )
        m.events.clear()
        return encoded

    async def json(self) -> bytes:
        m = self._message
        head = {"kind": service_pb2.WatchKind.Name(m.kind), "resumeToken": m.token, "reason": m.reason}
        told = json.dumps({name: value for name, value in head.items() if value}, ensure_ascii=False).encode()[:-1]
        events = b',"events":[' + b",".join(await in_slices(self._json_cache.get, m.events)) + b"]" if m.events else b""
        m.events.clear()
        collapsed = b',"collapsed":true' if m.collapsed else b""
        return told + events + collapsed + b',"sources":[' + self._codec.json(m.source) + b"]}"


S = TypeVar("S")


async def in_slices(make: Callable[[S], T], things: Iterable[S]) -> list[T]:
    """What is made of each, with a turn for the loop every few milliseconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    made = []
    for thing in things:
        made.append(make(thing))
        if loop.time() - began > _SLICE_S:
            await asyncio.sleep(0)
            began = loop.time()
    return made


class Answers:
    """Makes answers, and keeps what they share."""

    def __init__(self, json_bytes: int) -> None:
        """`json_bytes`: of what is kept as JSON; a fifth of it are events of watches."""
        self._codec = SourceCodec()
        self._json_cache, self._event_json = InstanceJson(json_bytes * 4 // 5), EventJson(json_bytes // 5)

    def complete(self, found: Found, *, single: bool = False) -> FramesAnswer:
        """An answer of FindInstances, or of GetInstance (`single`), with everything."""
        return FramesAnswer(found, self._json_cache, self._codec, single=single)

    async def found(self, found: Found, mask: Sequence[str], *, single: bool = False) -> FramesAnswer:
        """An answer of FindInstances, or of GetInstance (`single`); an empty mask asks for everything."""
        if mask:
            return await MaskedAnswer(found, self._json_cache, self._codec, single=single).prepared(mask)
        return FramesAnswer(found, self._json_cache, self._codec, single=single)

    def watch(self, message: WatchMessage) -> WatchAnswer:
        """A message of WatchInstances."""
        return WatchAnswer(message, self._event_json, self._codec)
