"""Things in their JSON form, made when they are asked for, kept within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict, deque

from google.protobuf import json_format
from google.protobuf.message import Message

from hq.memory import frames
from hq.memory.entry import Entry
from hq.validation.typed_fields import clean_times
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json


class Twins:
    """Instances as JSON. A twin hangs on its entry, so that lists find it without a search; the oldest go first."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: deque[tuple[Entry, bytes]] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, entry: Entry) -> bytes:
        """The instance as JSON."""
        twin = entry.json
        if twin is None:
            twin = entry.json = readable_json(instance_pb2.Instance.FromString(frames.body(entry.frame())))
            self._keep(entry, twin)
        return twin

    def _keep(self, entry: Entry, twin: bytes) -> None:
        # An entry that was replaced meanwhile is held here until its turn comes: its frame counts as well.
        self._kept.append((entry, twin))
        self._bytes += _size(entry, twin)
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            oldest, gone = self._kept.popleft()
            self._bytes -= _size(oldest, gone)
            if oldest.json is gone:
                oldest.json = None


class EventTwins:
    """Events of watches as JSON, by their encoded form: made once however many watch."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, event: bytes) -> bytes:
        """An encoded field `events = 2` of WatchInstancesResponse as JSON."""
        twin = self._kept.get(event)
        if twin is None:
            (message,) = service_pb2.WatchInstancesResponse.FromString(event).events
            twin = self._kept[event] = readable_json(message)
            self._bytes += len(event) + len(twin)
            while self._bytes > self._max_bytes and len(self._kept) > 1:
                self._bytes -= sum(map(len, self._kept.popitem(last=False)))
        return twin


def readable_json(message: Message) -> bytes:
    """As `to_json`, also where a time is none that JSON can say: it becomes the nearest that is."""
    try:
        return to_json(message)
    except (ValueError, json_format.Error):
        clean_times(message)
        return to_json(message)


def _size(entry: Entry, twin: bytes) -> int:
    return len(twin) + len(entry.frame()) + _ENTRY_BYTES


_ENTRY_BYTES = 1_000  # of an entry beside its frame
