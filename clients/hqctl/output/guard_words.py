"""What the guard does, in words. No I/O."""

from __future__ import annotations

from hqctl.words import clock_time, plural
from hqpb.v1 import service_pb2 as pb


def guard_words(guard: pb.GuardState) -> str:
    """What the guard does, in one or two sentences."""
    doing = "holding expiries" if guard.holding else "not holding"
    until = f" until {clock_time(guard.until)} at the latest" if guard.holding and guard.until.seconds else ""
    if guard.holding and guard.verdict:
        return f"{doing}{until}: {verdict(guard)}."
    nodes = plural(guard.nodes, "node")
    counted = f"{guard.silent} of {plural(guard.expected, 'revision')} silent, on {nodes}"
    return f"{doing}{until} ({counted})."


def verdict(guard: pb.GuardState) -> str:
    """Why it holds, without a full stop."""
    return guard.verdict.removeprefix("holding: ").rstrip(".")
