"""The DNS lane of the hosts as a store of its own, so that one healer serves both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from google.protobuf.message import Message

from control.records import Kind
from walle.healing.lanes import swap_lanes
from walle.process.ports import MayBegin, TransactionStore
from walle.work.book import HOST, Notice, WalleTransaction
from wallepb.v1.host_pb2 import Host

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class DnsLane:
    """A store whose hosts have their lanes swapped. Whether the lane has anything to do costs no transaction."""

    def __init__(self, store: TransactionStore) -> None:
        self._store = store

    def host(self, name: str) -> Host | None:
        host = self._store.host(name)
        return swap_lanes(host) if host is not None else None

    def why_nothing_begins(self) -> str:
        return self._store.why_nothing_begins()

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        return await self._store.transact(lambda book: decide(DnsBook(book)))

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        await self._store.decide(lambda book: decide(DnsBook(book)))

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        return await self._store.intend(lambda book: decide(DnsBook(book)))


class DnsBook:
    """A transaction for the DNS lane: hosts are read and stored with their two lanes swapped."""

    def __init__(self, book: WalleTransaction) -> None:
        self._book = book

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        found = self._book.get(kind, record_id)
        return cast("M", swap_lanes(found)) if isinstance(found, Host) and kind is HOST else found

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        self._book.put(kind, record_id, cast("M", swap_lanes(message)) if isinstance(message, Host) else message)

    def delete(self, kind: Kind[M], record_id: str, /) -> None:
        self._book.delete(kind, record_id)
