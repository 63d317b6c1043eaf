"""No caller ever gets the headers, deadline, identity or answer of another one, whatever happens around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.rights.rules import READ
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.support.secured import Secured
from tests.wire.crowd import Crowd
from tests.wire.echo_table import EchoTable, Ledger, Said, say
from tests.wire.fake_table import FakeHealth
from tests.wire.limited import limited

SEED = 20_261_122
pressed = limited(max_calls=12)  # so that some are refused


class Echoing:
    """A server whose methods send back what they were sent."""

    def __init__(self, limits: Limits, security: Security | None = None) -> None:
        clock = SystemClock()
        self.table = EchoTable(clock, SEED)
        self.shared = ServerContext(limits, clock, RequestIds("test"), security)
        self.server = Server(self.table.methods(READ), FakeHealth(), self.shared, CollectorRegistry(), {})

    async def left_alone(self) -> None:
        """Return when nothing is under way any more."""
        admission = self.shared.admission
        await eventually(lambda: not (admission.calls or admission.streams or admission.answers_bytes), 10)


@pytest.fixture
async def echoing(limits: Limits) -> AsyncIterator[Echoing]:
    one = Echoing(limits)
    yield one
    await one.server.stop(0)


async def all_kinds(crowd: Crowd, size: int, calls: int) -> None:
    """A crowd of so many callers: half of them by our machine, a quarter by grpcio, a quarter over HTTP/1.1."""
    quarter, few = size // 4, size // 20
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(crowd.channel()) for _ in range(4)]
        lines = [crowd.line() for _ in range(8)]
        numbers = iter(range(size))
        await crowd.all_of(
            [crowd.by_grpcio(channels[i % 4], next(numbers), calls) for i in range(quarter - few)],
            [crowd.alone_by_grpcio(next(numbers), calls) for _ in range(few)],
            [crowd.by_machine(lines[i % 8], next(numbers), calls) for i in range(2 * quarter - few)],
            [crowd.alone_by_machine(next(numbers), calls) for _ in range(few)],
            [crowd.by_http1(3 * quarter + 4 * i, calls) for i in range(quarter // 4)],
            [crowd.hang_up_now_and_then(lines, 4 * calls)],
        )
        for line in lines:
            line.close()


async def check_plain(echoing: Echoing, size: int, calls: int) -> Ledger:
    rng, ledger = Random(SEED), Ledger()
    port = await echoing.server.listen("127.0.0.1:0")
    crowd = Crowd(port, lambda caller, number: say(rng, caller, number), ledger, SEED)
    await all_kinds(crowd, size, calls)
    await echoing.left_alone()
    counts = ledger.counts
    assert counts["OK"] > size * calls // 5, counts  # how many are refused is a matter of speed
    rare = min(counts[kind] for kind in ("NOT_FOUND", "RESOURCE_EXHAUSTED", "left", "hung up"))
    assert rare, f"some of it did not happen: {counts}"
    assert echoing.table.cancelled, "nobody left a call that was under way"
    return ledger


async def check_secured(files: Secured, limits: Limits, size: int, calls: int) -> Ledger:
    """The same with TLS and tokens: of ten callers seven are let in, one is denied, and two cannot authenticate."""
    rng, ledger, issuer = Random(SEED), Ledger(), files.issuer
    security = files.security()
    assert security.tls is not None
    subjects = [f"stranger/c{i}" if i % 10 == 7 else f"reader/c{i}" for i in range(size)]
    tokens = [[issuer.token(subject, jti=f"{subject}-{n}") for n in range(2)] for subject in subjects]
    broken: dict[int, Callable[[str], str]] = {8: lambda text: text[:-1], 9: lambda text: "e30" + text}

    def sayer(caller: int, number: int) -> Said:
        token = broken.get(caller % 10, str)(tokens[caller][number % 2])
        return say(rng, caller, number, f"Bearer {token}", subjects[caller])

    echoing = Echoing(limits, security)
    port = await echoing.server.listen("127.0.0.1:0", security.tls.listening())
    crowd = Crowd(port, sayer, ledger, SEED, files.authority.cert.read_bytes())
    try:
        await all_kinds(crowd, size, calls)
        await echoing.left_alone()
    finally:
        await echoing.server.stop(0)
        security.close()
    return ledger


@pressed
@pytest.mark.long
async def test_a_thousand_callers_get_what_is_theirs(echoing: Echoing) -> None:
    await check_plain(echoing, 1_000, 5)


@pytest.mark.long
@pytest.mark.timeout(900)
@pressed
async def test_ten_thousand_callers_get_what_is_theirs(echoing: Echoing) -> None:
    for _ in range(10):
        ledger = await check_plain(echoing, 1_000, 6)
        print(dict(ledger.counts))


@pressed
@pytest.mark.long
async def test_a_thousand_callers_are_who_their_tokens_say_they_are(files: Secured, limits: Limits) -> None:
    ledger = await check_secured(files, limits, 1_000, 4)
    assert min(ledger.counts[code] for code in ("OK", "PERMISSION_DENIED", "UNAUTHENTICATED")) > 100, ledger.counts
