"""Ending a section by its policy: the stop script, SIGTERM, the grace, SIGKILL."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from hqpb.v1.instance_pb2 import Container
from instancectl.processes.children import Child
from instancectl.processes.exits import Exit

DEFAULT_GRACE_S = 10.0
DEFAULT_DRAIN_S = 1.0


def grace_s(container: Container) -> float:
    """How long a stop may take before SIGKILL, the stop script included; 0 s are kept if asked for."""
    if not container.HasField("stop_grace_period"):
        return DEFAULT_GRACE_S
    return container.stop_grace_period.ToTimedelta().total_seconds()


def drain_s(container: Container) -> float:
    """How long it keeps running once it is known to be not ready; 0 s are kept if asked for."""
    if not container.HasField("drain_period"):
        return DEFAULT_DRAIN_S
    return container.drain_period.ToTimedelta().total_seconds()


async def stop(child: Child, grace_s: float, script: Callable[[], Awaitable[object]] | None) -> Exit:
    """End a process and its offspring; return how it ended. Cancelled, it still kills before it goes."""
    try:
        async with asyncio.timeout(grace_s):
            if script is not None and not child.has_ended:
                await script()
            child.signal_all(signal.SIGTERM)
            await child.wait()
    except TimeoutError:
        pass
    finally:
        child.signal_all(signal.SIGKILL)
    how = await child.wait()
    child.sweep()
    child.grip.let_go()
    return how
