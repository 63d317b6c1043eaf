"""Notices that wait to be stored: none is dropped uncounted, even if more come meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from control import ControlConfig
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.errors import StoreUnavailable
from serving.limiting.limits import Limits
from store.memory import MemoryStore
from tests.support.walle.book import DictBook
from tests.support.walle.running import ANYWHERE, pretending
from walle.process.outbox import Outbox
from walle.server import WalleServer
from walle.work.book import Notice, WalleTransaction
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, SEVERITY_ERROR


class Storing:
    """Stores nothing while it fails; `meanwhile` happens during a transaction."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.fails = False
        self.meanwhile: Callable[[], None] = lambda: None

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        found = decide(DictBook())
        self.meanwhile()
        self.meanwhile = lambda: None
        if self.fails:
            raise StoreUnavailable("no")
        self.stored += [one.text for one in found]


@pytest.fixture
async def storing() -> Storing:
    return Storing()


@pytest.fixture
async def outbox(storing: Storing) -> Outbox:
    """An outbox of a process that does not run."""
    shared = ServerContext(Limits(), SystemClock(), RequestIds("one"))
    parts = ControlConfig("/walle/", "one"), "test", pretending(), MemoryStore(), shared, random.Random(1), ANYWHERE
    made = WalleServer(*parts).automaton.outbox
    made._storing = storing  # type: ignore[assignment]
    return made


def notices(first: int, end: int) -> list[Notice]:
    """Notices of which the first is critical."""
    return [Notice(SEVERITY_ERROR if n else SEVERITY_CRITICAL, "", f"notice {n}") for n in range(first, end)]


@pytest.mark.parametrize("fails", [False, True])
async def test_notices_that_come_while_others_are_stored_do_not_drop_them(
    outbox: Outbox, storing: Storing, fails: bool
) -> None:
    outbox.send(notices(0, 1_000))
    storing.fails, storing.meanwhile = fails, lambda: outbox.send(notices(1_000, 1_030))
    if fails:
        with pytest.raises(StoreUnavailable):
            await outbox._store("all")
        storing.fails = False
    await outbox._store("all")
    lost = range(1, 31) if fails else range(20, 30)
    assert storing.stored == [one.text for n, one in enumerate(notices(0, 1_030)) if n not in lost]
    assert outbox.lost == {"error": len(lost)}
