"""A replica's server from its start until it is told to stop, with what the process owes it meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from hq.process.server import Server
from serving.process import freeze_gc_each_time, relax_gc, when_told_to_stop

log = logging.getLogger(__name__)


async def until_stopped(
    server: Server,
    when_loaded: Callable[[Server], None] | None = None,
    fatal: Coroutine[Any, Any, Exception] | None = None,
) -> None:
    """Serve until a signal comes, or until `fatal` is over: an etcd of its own, without which nothing works.

    Raises what the server raises, and what `fatal` returns.
    """
    when_told_to_stop(server.stop)
    serving = asyncio.create_task(server.serve(), name="server")
    watching = [asyncio.create_task(fatal)] if fatal else []
    told = [asyncio.create_task(_tell(server, when_loaded))] if when_loaded else []
    relax_gc()
    freezing = asyncio.create_task(freeze_gc_each_time(server.replica.loaded))
    await asyncio.wait((serving, *watching), return_when=asyncio.FIRST_COMPLETED)
    why = None
    if not serving.done():
        log.error("the embedded etcd ended unexpectedly: stopping")
        server.stop()
        why = watching[0].result()
    for task in (*watching, *told, freezing):
        task.cancel()
    await serving
    if why is not None:
        raise why


async def _tell(server: Server, when_loaded: Callable[[Server], None]) -> None:
    await server.listening
    await server.replica.loaded.wait()
    when_loaded(server)
