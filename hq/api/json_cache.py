"""Instances and events as JSON, made when they are asked for, cached within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict, deque

from google.protobuf import json_format
from google.protobuf.message import Message

from hq.memory import frames
from hq.memory.entry import Entry
from hq.validation.typed_fields import clean_times
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json


class InstanceJson:
    """Instances as JSON. It hangs on its entry, so that lists find it without a search; the oldest go first."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: deque[tuple[Entry, bytes]] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, entry: Entry) -> bytes:
        """The instance as JSON."""
        encoded = entry.json
        if encoded is None:
            encoded = entry.json = readable_json(instance_pb2.Instance.FromString(frames.body(entry.frame())))
            self._keep(entry, encoded)
        return encoded

    def _keep(self, entry: Entry, encoded: bytes) -> None:
        # An entry that was replaced meanwhile is held here until its turn comes: its frame counts as well.
        self._kept.append((entry, encoded))
        self._bytes += _size(entry, encoded)
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            oldest, gone = self._kept.popleft()
            self._bytes -= _size(oldest, gone)
            if oldest.json is gone:
                oldest.json = None


class EventJson:
    """Events of watches as JSON, by their encoded form: made once however many watch."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, event: bytes) -> bytes:
        """An encoded field `events = 2` of WatchInstancesResponse as JSON."""
        encoded = self._kept.get(event)
        if encoded is None:
            (message,) = service_pb2.WatchInstancesResponse.FromString(event).events
            encoded = self._kept[event] = readable_json(message)
            self._bytes += len(event) + len(encoded)
            while self._bytes > self._max_bytes and len(self._kept) > 1:
                self._bytes -= sum(map(len, self._kept.popitem(last=False)))
        return encoded


def readable_json(message: Message) -> bytes:
    """As `to_json`, also where a time is none that JSON can say: it becomes the nearest that is."""
    try:
        return to_json(message)
    except (ValueError, json_format.Error):
        clean_times(message)
        return to_json(message)


def _size(entry: Entry, encoded: bytes) -> int:
    return len(encoded) + len(entry.frame()) + _ENTRY_BYTES


_ENTRY_BYTES = 1_000  # of an entry beside its frame
