"""Answers made of frames: the bytes of an answer are copied together, never encoded; JSON comes from kept twins."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence

from google.protobuf import field_mask_pb2, json_format

from hq import frames
from hq.entry import Entry
from hq.errors import TooLarge
from hq.registry.source import Source
from hq.registry.watches import Message
from hqpb.v1 import instance_pb2, service_pb2
from serving.jsonio import to_json

_SLICE_S = 0.005  # JSON is made for so long before the loop gets a turn


class Twins:
    """Instances as JSON, made when they are asked for, kept within a bound of bytes: least used go first."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, entry: Entry) -> bytes:
        """The instance as JSON."""
        frame, instance_id = entry.frame(), entry.traits.id
        kept = self._kept.get(instance_id)
        if kept is not None and kept[0] is frame:
            self._kept.move_to_end(instance_id)
            return kept[1]
        twin = to_json(instance_pb2.Instance.FromString(frames.body(frame)))
        self._keep(instance_id, frame, twin)
        return twin

    def has(self, entry: Entry) -> bool:
        """Whether `get` would be quick."""
        kept = self._kept.get(entry.traits.id)
        return kept is not None and kept[0] is entry.frame()

    def _keep(self, instance_id: str, frame: bytes, twin: bytes) -> None:
        old = self._kept.pop(instance_id, None)
        if old is not None:
            self._bytes -= len(old[1]) + len(old[0])
        self._kept[instance_id] = (frame, twin)
        self._bytes += len(twin) + len(frame)
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            _, (gone_frame, gone) = self._kept.popitem(last=False)
            self._bytes -= len(gone) + len(gone_frame)


class SourceCodec:
    """Sources in both encodings. Encoded once per millisecond and version, however many answers bear it."""

    def __init__(self) -> None:
        self._last: Source | None = None
        self._encoded = b""

    def proto(self, source: Source) -> bytes:
        """As field `sources = 3`."""
        if source != self._last:
            self._encoded = frames.delimited(b"\x1a", source.message().SerializeToString())
            self._last = source
        return self._encoded

    @staticmethod
    def json(source: Source) -> bytes:
        return to_json(source.message())


class FramesAnswer:
    """Instances, a page token and a source: answers of GetInstance and FindInstances.

    Both messages number their fields alike, so that one splice serves both; in JSON `single` says which it is.
    """

    __slots__ = ("_codec", "_entries", "_mask", "_single", "_source", "_token", "_twins")

    def __init__(
        self,
        entries: Sequence[Entry],
        token: str,
        source: Source,
        mask: Sequence[str],
        twins: Twins,
        codec: SourceCodec,
        *,
        single: bool = False,
    ) -> None:
        self._entries, self._token, self._source, self._mask = entries, token, source, mask
        self._twins, self._codec, self._single = twins, codec, single

    def proto(self) -> bytes:
        if self._mask:
            items = [frames.delimited(frames.FRAME_TAG, self._masked(e).SerializeToString()) for e in self._entries]
        else:
            items = [entry.frame() for entry in self._entries]
        if self._token:
            items.append(frames.delimited(b"\x12", self._token.encode()))
        items.append(self._codec.proto(self._source))
        return b"".join(items)

    async def json(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        twins = []
        for entry in self._entries:
            twins.append(to_json(self._masked(entry)) if self._mask else self._twins.get(entry))
            if loop.time() - began > _SLICE_S:
                await asyncio.sleep(0)
                began = loop.time()
        source = b'"sources":[' + self._codec.json(self._source) + b"]}"
        if self._single:
            return b'{"instance":' + twins[0] + b"," + source
        token = b'"nextPageToken":' + json.dumps(self._token).encode() + b"," if self._token else b""
        listed = b'"instances":[' + b",".join(twins) + b"]," if twins else b""
        return b"{" + listed + token + source

    def _masked(self, entry: Entry) -> instance_pb2.Instance:
        masked = instance_pb2.Instance()
        field_mask_pb2.FieldMask(paths=self._mask).MergeMessage(entry.instance(), masked)
        return masked


class WatchAnswer:
    """One message of a watch."""

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def proto(self) -> bytes:
        m = self._message
        head = b"\x08" + frames.varint(m.kind)
        tail = frames.delimited(b"\x1a", m.token.encode()) if m.token else b""
        tail += frames.delimited(b"\x22", m.source.message().SerializeToString())
        tail += frames.delimited(b"\x2a", m.reason.encode()) if m.reason else b""
        tail += b"\x30\x01" if m.collapsed else b""
        return b"".join((head, *m.events, tail))

    async def json(self) -> bytes:
        message = service_pb2.WatchInstancesResponse.FromString(self.proto())
        return json.dumps(json_format.MessageToDict(message), separators=(",", ":"), ensure_ascii=False).encode()


__all__ = ["FramesAnswer", "SourceCodec", "TooLarge", "Twins", "WatchAnswer"]
