"""Waiting for what becomes of orders, or until a service is at rest, with a live table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import click

from hqcli.exits import Exit
from hqcli.options import DurationParam
from nannyctl.nanny_server import NannyServer
from nannyctl.output.services import LiveServiceView, active_words, current_name, outcome_words, short, target_name
from nannyctl.session import complain
from nannypb.v1 import service_pb2 as pb

F = TypeVar("F", bound=Callable[..., Any])
_ARRIVED = {
    pb.TARGET_CREATED: pb.CURRENT_STATE_CREATED,
    pb.TARGET_PREPARED: pb.CURRENT_STATE_PREPARED,
    pb.TARGET_ACTIVE: pb.CURRENT_STATE_ACTIVE,
}
_EXITS: Final = {
    pb.ORDER_OUTCOME_FAILED: Exit.REFUSED,
    pb.ORDER_OUTCOME_ROLLED_BACK: Exit.ROLLED_BACK,
    pb.ORDER_OUTCOME_SUPERSEDED: Exit.SUPERSEDED,
    pb.ORDER_OUTCOME_CANCELLED: Exit.CANCELLED,
}


class WaitResult(NamedTuple):
    """How waiting ends; `message` is empty where everything went as ordered."""

    code: Exit
    message: str = ""


@dataclass(frozen=True, slots=True)
class TargetReached:
    """An order for the target of a snapshot."""

    id: str
    snapshot: str
    target: int

    def verdict(self, service: pb.Service) -> WaitResult | None:
        """Return its outcome; None: it is open."""
        now = next((one for one in service.snapshot if one.snapshot_id == self.snapshot), None)
        if now is None and self.target == pb.TARGET_DESTROYED:
            return WaitResult(Exit.OK)
        if now is None or now.order.id != self.id:
            later = f"its target was set to {target_name(now.target)} again" if now is not None else "it was destroyed"
            by = f" by {now.target_set.author}" if now is not None and now.target_set.author else ""
            return self._final_result(service, Exit.SUPERSEDED, f"superseded: {later}{by}")
        if now.order.outcome == pb.ORDER_OUTCOME_REACHED:
            return WaitResult(Exit.OK)
        code = _EXITS.get(now.order.outcome)
        return None if code is None else self._final_result(service, code, outcome_words(now.order))

    def _final_result(self, service: pb.Service, code: Exit, words: str) -> WaitResult:
        return WaitResult(code, f"{short(self.snapshot)} {target_name(self.target)}: {words}; {active_words(service)}")


Goal = Callable[[pb.Service], WaitResult | None]
"""None: not yet."""


def wait_option(function: F, default: str | None = None) -> F:
    """The option --wait, as `wait_s`; None: do not wait."""
    text = (
        "Wait until it is done, at most this long (90s, 10m). Exit code 8: timed out, 1: failed, 11: rolled back, "
        "12: superseded by a later order, 13: the service was stopped."
    )
    return click.option(
        *("--wait", "wait_s"), type=DurationParam(), default=default, show_default=True, metavar="SPAN", help=text
    )(function)


async def wait_for_goal(
    server: NannyServer, service: str, wait_s: float | None, goal: Goal | None = None, *, since: int = 0
) -> Exit:
    """Follow a service until the goal says how it ends; without a goal for ever.

    Args:
        since: the version of the service from which on the goal is asked: another process may still be behind it.

    Raises HqApiError.
    """
    live = LiveServiceView()
    try:
        async with asyncio.timeout(wait_s):
            async for now in server.watch(pb.WatchServiceRequest(service_id=service)):
                live.show(now)
                if goal is not None and now.version >= since and (verdict := goal(now)) is not None:
                    if verdict.message:
                        complain(f"{service}: {verdict.message}.")
                    return verdict.code
    except TimeoutError:
        complain(f"{service}: not done within {wait_s:g} s; it goes on: see `nanny watch {service}`.")
    return Exit.NOT_YET


class AtRest:
    """The goal of a caller without an order: the orders that were open at first are closed, nothing is under way."""

    def __init__(self) -> None:
        self._open: Sequence[TargetReached] | None = None

    def __call__(self, service: pb.Service) -> WaitResult | None:
        if self._open is None:
            self._open = [
                TargetReached(one.order.id, one.snapshot_id, one.order.target)
                for one in service.snapshot
                if one.order.outcome == pb.ORDER_OUTCOME_OPEN
            ]
        verdicts = [one.verdict(service) for one in self._open]
        if not all(verdicts):
            return None
        bad = next((verdict for verdict in verdicts if verdict and verdict.code is not Exit.OK), None)
        return bad or rest_result(service)


def stop_result(service: pb.Service) -> WaitResult | None:
    """The goal after the order to stop a service: nothing runs."""
    if any(one.target == pb.TARGET_ACTIVE for one in service.snapshot):
        return WaitResult(Exit.SUPERSEDED, f"the stop was superseded; {active_words(service)}")
    return rest_result(service)


def rolled_back_result(service: pb.Service) -> WaitResult | None:
    """Return a result if the last order failed and an earlier snapshot is active instead, with no order since."""
    active = next((one for one in service.snapshot if one.target == pb.TARGET_ACTIVE), None)
    if active is None or active.current != pb.CURRENT_STATE_ACTIVE:
        return None
    for one in service.snapshot:
        went_back = one.order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK
        is_instead = went_back and one.order.instead_snapshot_id == active.snapshot_id
        if is_instead and active.target_set.time.ToNanoseconds() <= one.target_set.time.ToNanoseconds():
            return WaitResult(Exit.ROLLED_BACK, f"{short(one.snapshot_id)}: {outcome_words(one.order)}")
    return None


def rest_result(service: pb.Service) -> WaitResult | None:
    """OK: everything has arrived; REFUSED: something stopped short of its target; None: something is under way."""
    if any(one.HasField("action") for one in service.snapshot) or service.pending_events:
        return None
    for one in service.snapshot:
        if one.current != _ARRIVED.get(one.target, -1):
            why = one.message or f"{short(one.snapshot_id)} stopped short of its target, at {current_name(one.current)}"
            return WaitResult(Exit.REFUSED, why)
    return WaitResult(Exit.OK)
