"""Values and conditions as people read them: ages, times, sizes, the state of the guard. No I/O."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from hqpb.v1 import instance_pb2

if TYPE_CHECKING:
    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.timestamp_pb2 import Timestamp
from hqpb.v1 import service_pb2 as pb

CLOCKS_DIFFER_S = 2.0  # normal difference between machines; beyond that one of the clocks is wrong
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_AMOUNT = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile("".join(f"(?:{_AMOUNT}{unit})?" for unit in ("d", "h", "m", "s", "ms")))

_TARGETS = {instance_pb2.REVISION_TARGET_READY: "READY", instance_pb2.REVISION_TARGET_CREATED: "CREATED"}
_TRUTH = {
    instance_pb2.CONDITION_STATUS_TRUE: "yes",
    instance_pb2.CONDITION_STATUS_FALSE: "no",
}


def span(seconds: float) -> str:
    """A span of time in its two largest units: `45s`, `3m20s`, `2h`, `5d3h`."""
    rest = max(0, int(seconds))
    parts = []
    for size_s, unit in _UNITS:
        count, rest = divmod(rest, size_s)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts[:2]) or "0s"


def parse_span(text: str) -> float:
    """Seconds of `90`, `0.5`, `90s`, `3m`, `1h30m`, `1.5h`, `2d`, `500ms`.

    Raises:
        ValueError: it is something else.
    """
    text = text.strip()
    if re.fullmatch(_AMOUNT, text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not a valid duration: write e.g. 90s, 3m, 1h30m or 2d")
    return sum(float(n or 0) * size_s for n, size_s in zip(match.groups(), (86_400, 3_600, 60, 1, 0.001), strict=True))


def seconds_of(duration: Duration) -> float:
    """A protobuf duration in seconds."""
    return duration.seconds + duration.nanos / 1e9


def age(moment: Timestamp, now_s: float) -> str:
    """How long ago on wall clocks, as one word: `-` if it never was, `ahead:5m` if this machine's clock is behind."""
    if not moment.seconds:
        return "-"
    passed_s = now_s - moment.seconds - moment.nanos / 1e9
    return span(passed_s) if passed_s >= -CLOCKS_DIFFER_S else f"ahead:{span(-passed_s)}"


def ago(moment_s: float, now_s: float) -> str:
    """How long ago a moment in seconds since 1970 was: `5m ago`, or that this machine's clock is behind it."""
    if moment_s > now_s + CLOCKS_DIFFER_S:
        return f"{span(moment_s - now_s)} ahead of this machine's clock"
    return f"{span(now_s - moment_s)} ago"


def clock_time(moment: Timestamp) -> str:
    """A moment in local time with its zone; `never` if there is none."""
    if not moment.seconds:
        return "never"
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(moment.seconds))


def stamp(moment: Timestamp) -> str:
    """A moment in local time as one word, for tables: `2026-11-21T01:18:49Z`, `2026-11-21T02:18:49+01:00`."""
    if not moment.seconds:
        return "-"
    from datetime import datetime

    return datetime.fromtimestamp(moment.seconds).astimezone().isoformat().replace("+00:00", "Z")


def truth(condition: instance_pb2.Condition) -> str:
    """`yes`, `no` or `unknown`."""
    return _TRUTH.get(condition.status, "unknown")


def target(value: instance_pb2.RevisionTarget) -> str:
    """Return the name of a revision's target."""
    return _TARGETS.get(value, "INSTALLED")


def size(size_bytes: int) -> str:
    """A size in the unit that suits it: `512B`, `20.0KiB`, `1.5GiB`."""
    amount, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size_bytes}B" if unit == "B" else f"{amount:.1f}{unit}"


def plural(count: int, noun: str) -> str:
    """`1 instance`, `2 instances`, `2 expiries`."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}s"


def mended_words(count: int, whose: str, store: str) -> str:
    """Say that memory was wrong, and is right again."""
    return (
        f"the memory of {whose} differed from {store} in {plural(count, 'record')}, and was mended; its log names them"
    )


def guard_words(guard: pb.GuardState) -> str:
    """Describe the guard's state, in one or two sentences."""
    doing = "holding expiries" if guard.holding else "not holding"
    until = f" until {clock_time(guard.until)} at the latest" if guard.holding and guard.until.seconds else ""
    if guard.holding and guard.verdict:
        return f"{doing}{until}: {verdict(guard)}."
    nodes = plural(guard.nodes, "node")
    counted = f"{guard.silent} of {plural(guard.expected, 'revision')} silent, on {nodes}"
    return f"{doing}{until} ({counted})."


def verdict(guard: pb.GuardState) -> str:
    """Why the guard holds, without a full stop."""
    return guard.verdict.removeprefix("holding: ").rstrip(".")
