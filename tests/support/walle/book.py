"""Records in a dictionary, with the transactions that decisions expect."""

from __future__ import annotations

from typing import TypeVar, cast

from google.protobuf.message import Message

from control.records import Kind

M = TypeVar("M", bound=Message)


class DictBook:
    """A store of one process: what is put is there at once."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], Message] = {}

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        found = self.records.get((kind.name, record_id))
        if found is None:
            return None
        copy = kind.message()
        copy.CopyFrom(cast("M", found))
        return copy

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        copy = kind.message()
        copy.CopyFrom(message)
        self.records[kind.name, record_id] = copy

    def delete(self, kind: Kind[M], record_id: str, /) -> None:
        self.records.pop((kind.name, record_id), None)
