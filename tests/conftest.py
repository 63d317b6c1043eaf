"""What every test may ask for."""

from __future__ import annotations

import gc
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from serving.calls.current import CURRENT
from tests.support.replicas import Replicas

pytest_plugins = ["tests.support.canary", "tests.support.etcd"]

# How long an example takes is the machine's business: one that stalls for 0.2 s is no fault. The rest as it was.
# `make test` tries a few examples of each property, `make test-long` (--hypothesis-profile=thorough) many; "exhaustive"
# is for a night with one of them, its time limit taken off.
settings.register_profile(
    "thorough", settings(), max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", settings.get_profile("thorough"), max_examples=20_000)
settings.register_profile("few", settings.get_profile("thorough"), max_examples=15)
settings.load_profile("few")

# Started in the background by a shell, a run ignores Ctrl-C, and so would everything that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live to the end: the collector does not look at them, while they are made or ever after."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# A program that a test runs in this process takes these, and its loop does not give them back when it is closed.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


@pytest.fixture(autouse=True)
def signals_are_given_back() -> Iterator[None]:
    """The next test of this worker finds them as this one did."""
    before = [(number, signal.getsignal(number)) for number in _SIGNALS]
    yield
    for number, handler in before:
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def nobody_calls() -> None:
    """Calls that a test before made outside of any task are not the current one."""
    CURRENT.set(None)


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    """`await replicas.start([endpoint], prefix, "--flag")`: all of them end with the test."""
    async with Replicas(tmp_path) as started:
        yield started
