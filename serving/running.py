"""How the process of a server runs: on which loop, and until which signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to its end. Ctrl-C before anybody listens for signals ends it quietly."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.suppress(KeyboardInterrupt):
        runner.run(main())


def when_told_to_stop(stop: Callable[[], None]) -> None:
    """From now on, SIGINT and SIGTERM call `stop` in the running loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
