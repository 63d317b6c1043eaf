"""Ports of reconcilers: the records, and the counterparts that are configured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from walle.approval.protocol import CmsPort
from walle.executors.port import Executor
from walle.work.book import Notice, WalleTransaction
from wallepb.v1.host_pb2 import Host, OperationKind

T = TypeVar("T")


class MayBegin(Protocol):
    """Proof that an intent was stored just now."""

    def check(self) -> None:
        """Call it right before the effect; raises if it may not begin (any more)."""


class TransactionStore(Protocol):
    """Transactions over the records."""

    def host(self, name: str) -> Host | None:
        """The host in memory; shared, do not change it."""

    def why_nothing_begins(self) -> str:
        """Why nothing begins (frozen or stopped): no operation is begun, running ones finish."""

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        """Run `decide` and store what it put; again if something it read has changed meanwhile."""

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        """Like `transact`, for a decision that people are notified of."""

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        """Like `transact`, for an intent; None: `decide` said no."""


class Providers(Protocol):
    """Where an operation's CMSs and executors come from."""

    def cms(self, project: str, url: str) -> CmsPort:
        """Raises CmsFailure: the project has no such CMS any more."""

    def executor(self, kind: OperationKind) -> Executor:
        """Raises ExecutorFailure: none is configured for this kind."""
