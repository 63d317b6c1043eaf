"""Waiting until a service has arrived, with a live table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hqcli.options import Span
from nannyctl.exits import Exit
from nannyctl.nanny_server import NannyServer
from nannyctl.output.services import Live
from nannyctl.session import complain
from nannypb.v1 import service_pb2 as pb

F = TypeVar("F", bound=Callable[..., Any])
_ARRIVED = {
    pb.TARGET_CREATED: pb.CURRENT_STATE_CREATED,
    pb.TARGET_PREPARED: pb.CURRENT_STATE_PREPARED,
    pb.TARGET_ACTIVE: pb.CURRENT_STATE_ACTIVE,
}


def wait_option(function: F) -> F:
    """The option --wait, as `wait_s`; None: do not wait."""
    text = "Wait until it is done, at most this long (90s, 10m). Exit code 8: timed out, 1: failed."
    return click.option("--wait", "wait_s", type=Span(), default=None, metavar="SPAN", help=text)(function)


async def waited(
    server: NannyServer, service: str, wait_s: float | None, snapshot: str = "", *, forever: bool = False
) -> Exit:
    """Follow a service until a snapshot (empty: everything) has arrived, or has stopped short of it.

    Raises HqApiError.
    """
    live = Live()
    try:
        async with asyncio.timeout(None if forever else wait_s):
            async for now in server.watch(pb.WatchServiceRequest(service_id=service)):
                live.show(now)
                if not forever and (told := verdict(now, snapshot)) is not None:
                    return told
    except TimeoutError:
        complain(f"{service}: not done within {wait_s:g} s; it goes on: see `nanny watch {service}`.")
    return Exit.NOT_YET


def verdict(service: pb.Service, snapshot: str = "") -> Exit | None:
    """OK: arrived; REFUSED: it stopped short of its target; None: under way."""
    if any(one.HasField("action") for one in service.snapshot) or service.pending_events:
        return None
    for one in service.snapshot:
        if snapshot in ("", one.snapshot_id) and one.current != _ARRIVED.get(one.target, -1):
            complain(f"{service.id}: {one.message or 'it stopped short of its target'}.")
            return Exit.REFUSED
    return Exit.OK
