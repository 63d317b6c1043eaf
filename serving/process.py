"""How the process of a server runs: on which loop, until which signal, with how much garbage collection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, Protocol

import uvloop

log = logging.getLogger(__name__)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main` to its end. Ctrl-C before signals are handled ends it quietly."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.suppress(KeyboardInterrupt):
        runner.run(main())


def when_told_to_stop(stop: Callable[[], None]) -> None:
    """Let SIGINT and SIGTERM call `stop` in the running loop, from now on."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


class Stoppable(Protocol):
    """A server of this process. `listening` is done when it listens."""

    @property
    def listening(self) -> asyncio.Future[Any]: ...

    def stop(self) -> None: ...

    async def serve(self) -> None: ...


async def until_stopped(
    server: Stoppable,
    loaded: asyncio.Event,
    when_loaded: Callable[[], None] | None = None,
    fatal: Coroutine[Any, Any, Exception] | None = None,
) -> None:
    """Serve until a signal comes, or until `fatal` ends: an embedded etcd, without which nothing works.

    `when_loaded` is called when the server listens and has read its store. Raises what the server raises, and what
    `fatal` returns.
    """
    when_told_to_stop(server.stop)
    serving = asyncio.create_task(server.serve(), name="server")
    watching = [asyncio.create_task(fatal)] if fatal else []
    told = [asyncio.create_task(_tell(server, loaded, when_loaded))] if when_loaded else []
    relax_gc()
    collecting = [asyncio.create_task(freeze_gc_each_time(loaded)), asyncio.create_task(collect_young())]
    await asyncio.wait((serving, *watching), return_when=asyncio.FIRST_COMPLETED)
    why = None
    if not serving.done():
        log.error("the embedded etcd ended unexpectedly: stopping")
        server.stop()
        why = watching[0].result()
    for task in (*watching, *told, *collecting):
        task.cancel()
    await serving
    if why is not None:
        raise why


async def _tell(server: Stoppable, loaded: asyncio.Event, when_loaded: Callable[[], None]) -> None:
    await server.listening
    await loaded.wait()
    when_loaded()


# Allocations beyond what was freed; collections of the young; of the middle-aged. Every object is looked at twice on
# its way up, however low the first two numbers are: with lower ones the work is the same and each pause is shorter.
# 5,000 watches that begin at once are 200,000 objects, and to look at all in one go took 100 ms; 10,000 take 3 to 8.
_THRESHOLDS = (500, 4, 50_000)


def relax_gc() -> None:
    """Collect old objects less often in this process, from now on."""
    gc.set_threshold(*_THRESHOLDS)


# Young objects that take the place of old ones do not count for Python, which looks at what was allocated less what was
# freed: 50,000 watches that are sent bookmarks made half a million of them before anybody looked, for 800 ms.
_YOUNG_S: Final = 0.05


async def collect_young() -> None:
    """Collect the young, and every other time the middle-aged too, every `_YOUNG_S` seconds, for ever."""
    while True:
        for generation in (0, 1):
            await asyncio.sleep(_YOUNG_S)
            gc.collect(generation)


def freeze_gc() -> None:
    """Exempt all live objects from garbage collection: takes milliseconds once a process has started."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def long_lived() -> Iterator[None]:
    """What is made within stays: nothing is collected meanwhile, and it is exempt from collection later.

    For a block that does not wait: a part of a listing, or of a checkpoint.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_enabled:
            gc.enable()


async def freeze_gc_each_time(loaded: asyncio.Event) -> None:
    """Exempt all objects whenever `loaded` is set again, for ever. Collects nothing first: that would take long."""
    while True:
        await loaded.wait()
        gc.freeze()
        while loaded.is_set():
            await asyncio.sleep(1.0)
