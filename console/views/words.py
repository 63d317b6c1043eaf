"""Times, numbers and states as people read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup

_DAY_S: Final = 86_400.0
_LAST_S: Final = 253_402_300_799.0  # of the year 9999
_NAME_CHARS: Final = 24
HASH_CHARS: Final = 12
_HASH: Final = re.compile(r"[0-9a-f]{16,}")
Moment = Timestamp | float | int | None


def seconds(moment: Moment) -> float:
    """Unix time; 0: none was given. Agents may say any time: the last of 9999 would be rounded to the year 10000."""
    if moment is None:
        return 0.0
    return min(moment.seconds + moment.nanos / 1e9, _LAST_S) if isinstance(moment, Timestamp) else float(moment)


def lasting(duration: Duration) -> float:
    """Seconds of a duration."""
    return duration.seconds + duration.nanos / 1e9


def span(length_s: float) -> str:
    """A length of time in one unit, or two: 40 s, 3 min, 2 h 5 min, 4 d."""
    left_s = abs(length_s)
    if left_s < 60:
        return f"{left_s:.0f} s"
    if left_s < 3_600:
        return f"{left_s // 60:.0f} min"
    if left_s < _DAY_S:
        hours, minutes = divmod(int(left_s // 60), 60)
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{left_s // _DAY_S:.0f} d"


def relative(at_s: float, now_s: float) -> str:
    """3 min ago, in 2 h. Less than a minute is not counted: a page with running numbers is hard to read."""
    if abs(now_s - at_s) < 60:
        return "just now" if at_s <= now_s else "in under a minute"
    return f"{span(now_s - at_s)} ago" if at_s <= now_s else f"in {span(at_s - now_s)}"


def absolute(at_s: float, now_s: float) -> str:
    """The time of day, with the date unless it is today's; UTC."""
    at, now = datetime.fromtimestamp(at_s, UTC), datetime.fromtimestamp(now_s, UTC)
    return at.strftime("%H:%M:%S") if at.date() == now.date() else at.strftime("%Y-%m-%d %H:%M")


def when(moment: Moment, now_s: float, *, runs: bool = False) -> Markup:
    """The absolute and the relative time, as an element; a dash where there is no time.

    `runs`: it changes all the time, as a heartbeat's: for the last minute only the relative time is shown.
    """
    at_s = seconds(moment)
    if not at_s:
        return Markup('<span class="dim">\N{EN DASH}</span>')
    if runs and 0 <= now_s - at_s < 60:
        return Markup("<time>{}</time>").format(relative(at_s, now_s))
    full = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{} <span class="dim">{}</span></time>').format(
        datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        full,
        relative(at_s, now_s),
        absolute(at_s, now_s),
    )


def number(count: int) -> str:
    """The number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u202f")


def plural(count: int, noun: str, many: str = "") -> str:
    """1 node, 2 nodes; 1 expiry, 2 expiries."""
    ending = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{number(count)} {noun if count == 1 else many or ending}"


def size(amount: int) -> str:
    """Bytes as 1.5 GiB."""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def cores(millicores: int) -> str:
    """1.5 cores."""
    return f"{millicores / 1000:g}"


def split_camel_case(reason: str) -> str:
    """HeartbeatTimeout as words: heartbeat timeout."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in reason).strip()


def clauses(text: str) -> list[str]:
    """Split a server's text at its semicolons."""
    return [part for part in text.split("; ") if part]


def short(revision: str) -> str:
    """Enough of a hash for people, as many characters everywhere; other names as they are."""
    if _HASH.fullmatch(revision):
        return revision[:HASH_CHARS]
    return revision if len(revision) <= _NAME_CHARS else f"{revision[:_NAME_CHARS]}\N{HORIZONTAL ELLIPSIS}"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": number,
    "plural": plural,
    "span": span,
    "size": size,
    "cores": cores,
    "spaced": split_camel_case,
    "clauses": clauses,
    "short": short,
}
