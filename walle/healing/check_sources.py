"""Merges several sources' reports of one check: it fails while one of them says so, and each clears its own. Pure.

A source that says that a check fails has to repeat it, else one that is gone would keep its hosts failing for ever. If
it does not, the check is unknown, which begins nothing and shows that nothing was repaired.

A fault that Alertmanager sees is not over because an agent, or HQ, sees nothing. And a payload that was sent before the
last one is no news.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from walle.fuses.fuse import Moment
from wallepb.v1.host_pb2 import Check, CheckSource
from wallepb.v1.service_pb2 import CheckReport

EXPIRES_MS: Final = 18_000_000  # Alertmanager repeats what fires every four hours
_NOTED_EVERY_MS: Final = 3_600_000
# Of one source, whose oldest go first: who makes up fingerprints clears by that only what it said itself.
MOST_FINE: Final = 10  # kept, so that an old payload is recognised
MOST: Final = 100
MOST_TEXT: Final = 1000  # characters; a report is cut to that before it is stored
MOST_BYTES: Final = 128 << 10  # of all checks of a host: its record must have room for work on it


def changed_check(check: Check | None, report: CheckReport, now: Moment) -> Check | None:
    """The check after a report; None: it says nothing new."""
    said = CheckSource(
        name=report.source,
        fingerprint=report.fingerprint,
        failing=report.failing,
        text=report.text[:MOST_TEXT],
        starts_ms=report.starts_at.ToMilliseconds(),
        at_ms=now.ms,
    )
    known = list(check.said) if check is not None else []
    before = next((one for one in known if _is_same(one, said)), None)
    if not _is_news(before, said, check):
        return None
    others = [one for one in known if one.name != said.name]
    own = [one for one in known if one.name == said.name and one is not before]
    fine = [one for one in own if not one.failing]
    own = [*(one for one in own if one.failing or one in fine[-MOST_FINE:]), said][-MOST:]
    return _check(check, report.name, [one for one in known if one in others or one in own] + [said], now)


def expired_check(check: Check, now: Moment) -> Check | None:
    """The check without what its sources have not repeated; None: they have repeated all."""
    kept = [one for one in check.said if not one.failing or now.ms - one.at_ms < EXPIRES_MS]
    if len(kept) == len(check.said):
        return None
    changed = _check(check, check.name, kept, now)
    if not changed.failing:
        changed.unknown, changed.source, changed.text = True, check.source, "its source has not repeated it for 5 h"
    return changed


def within_bounds(checks: Sequence[Check], now: Moment) -> list[Check]:
    """The checks of a host, without the oldest words of whoever says most, where a record cannot hold all of them."""
    kept = list(checks)
    while sum(check.ByteSize() for check in kept) > MOST_BYTES:
        sizes = Counter[str]()
        for check in kept:
            for one in check.said:
                sizes[one.name] += one.ByteSize()
        if not sizes:
            break  # these have no sources: an older version stored them
        [(loudest, _)] = sizes.most_common(1)
        mine = ((one, index) for index, check in enumerate(kept) for one in check.said if one.name == loudest)
        oldest, index = min(mine, key=lambda found: found[0].at_ms)
        check = kept[index]
        left = [one for one in check.said if one is not oldest]
        kept[index : index + 1] = [_check(check, check.name, left, now)] if left else []
    return kept


def _is_same(one: CheckSource, other: CheckSource) -> bool:
    return (one.name, one.fingerprint) == (other.name, other.fingerprint)


def _is_news(before: CheckSource | None, said: CheckSource, check: Check | None) -> bool:
    if before is None:
        # If the check has no sources, an older version stored it: whoever reports first decides.
        return said.failing or (check is not None and (check.unknown or (not check.said and check.failing)))
    if before.starts_ms and said.starts_ms:
        is_again = said.starts_ms == before.starts_ms and said.failing and not before.failing
        if said.starts_ms < before.starts_ms or is_again:
            return False
    is_repeated = said.at_ms - before.at_ms >= _NOTED_EVERY_MS or before.starts_ms != said.starts_ms
    return before.failing != said.failing or (said.failing and is_repeated)


def _check(check: Check | None, name: str, said: list[CheckSource], now: Moment) -> Check:
    failing = [one for one in said if one.failing]
    shown = failing[0] if failing else said[-1] if said else CheckSource()
    changed = Check(name=name, failing=bool(failing), text=shown.text, said=said)
    changed.source = ", ".join(sorted({one.name for one in failing})) or shown.name
    is_unchanged = check is not None and check.failing == changed.failing
    changed.since_ms = check.since_ms if check is not None and is_unchanged else now.ms
    changed.since.CopyFrom(check.since if check is not None and is_unchanged else now.wall)
    return changed
