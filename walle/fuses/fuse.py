"""A fuse: limits, the switches that they trip, and the credits that go beyond them.

Functions take a fuse and return a changed copy. A window is (now - period, now] on the ledger's clock, which only
the acting process advances, so that a wrong wall clock resets nothing. A host counts once per window, however
often its check fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from walle.fuses.limits import MAX_PERIOD_S, Limits, format_period, limit_of
from wallepb.v1.project_pb2 import Credit, Fuse, Mark, Switch, Switching

GLOBAL: Final = "global"
ALL_PROJECTS: Final = "all projects (the global fuse)"
AUTOMATION: Final = "automation"
_KEPT_CREDIT_MARKS: Final = 1000
_KEPT_SWITCHINGS: Final = 50


class Automation(StrEnum):
    """The automations, each with its own switch."""

    HEALING = "healing"
    DNS = "dns"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time on the ledger's clock, and the wall clock's at that moment (for people only)."""

    ms: int
    wall: Timestamp


@dataclass(frozen=True, slots=True)
class LimitUse:
    """An intended use of a limit: an operation about to be requested, or a host about to be declared dead."""

    counter: str
    host: str
    operation_id: str = ""


def copy_of(fuse: Fuse) -> Fuse:
    copy = Fuse()
    copy.CopyFrom(fuse)
    return copy


def switch_of(fuse: Fuse, automation: Automation) -> Switch:
    return fuse.dns if automation is Automation.DNS else fuse.healing


def hosts_in_window(fuse: Fuse, counter: str, period_s: int, now_ms: int) -> set[str]:
    """The hosts that used the limit within (now - period, now], except those paid by credits.

    Marks in the future are included: the previous process may have been some seconds ahead.
    """
    begin = now_ms - period_s * 1000
    return {m.host for m in fuse.mark if m.counter == counter and not m.by_credit and begin < m.at_ms}


def exceeded_limit(fuse: Fuse, limits: Limits, use: LimitUse, now_ms: int) -> str:
    """Which pair this use would exceed; empty: none."""
    for pair in limit_of(limits, use.counter).pair:
        hosts = hosts_in_window(fuse, use.counter, pair.period_s, now_ms)
        if use.host not in hosts and len(hosts) >= pair.count:
            return f"{use.counter} {format_period(pair.period_s)}:{pair.count}"
    return ""


def charge(fuse: Fuse, limits: Limits, use: LimitUse, now: Moment) -> Fuse | None:
    """The fuse after this use; None: a limit does not allow it. Credits are used first."""
    charged = _forget(copy_of(fuse), limits, now.ms)
    if _is_counted_everywhere(fuse, limits, use, now.ms):
        return _add_mark(charged, use, now, by_credit=False)
    credit = credit_for(charged, use.counter, now.ms)
    if credit is not None:
        credit.left -= 1
        return _add_mark(charged, use, now, by_credit=True, credit_until_ms=credit.until_ms)
    if exceeded_limit(fuse, limits, use, now.ms):
        return None
    return _add_mark(charged, use, now, by_credit=False)


def return_credit(fuse: Fuse, operation_id: str, now_ms: int) -> Fuse | None:
    """The fuse with the credit back of an operation that never began; None: it used none, or the credit expired."""
    mark = next((one for one in fuse.mark if one.by_credit and one.operation_id == operation_id), None)
    if mark is None or now_ms >= mark.credit_until_ms:
        return None
    returned = copy_of(fuse)
    for credit in returned.credit:
        if (credit.counter, credit.until_ms) == (mark.counter, mark.credit_until_ms):
            credit.left += 1
            returned.mark.remove(mark)
            return returned
    return None


def credit_for(fuse: Fuse, counter: str, now_ms: int) -> Credit | None:
    """A credit that is neither spent nor expired."""
    return next((c for c in fuse.credit if c.counter == counter and c.left and now_ms < c.until_ms), None)


def trip(fuse: Fuse, automation: Automation, pair: str, now: Moment, host: str) -> Fuse:
    """The fuse, switched off by a limit that `host` would exceed. One that is off already stays as it is."""
    tripped = copy_of(fuse)
    switch = switch_of(tripped, automation)
    if not switch.off:
        reason = f"limit {pair} would be exceeded"
        switch.CopyFrom(Switch(off=True, tripped_by=pair, reason=reason, by=AUTOMATION, time=now.wall))
        said = Switching(time=now.wall, automation=automation, off=True, by=AUTOMATION, reason=reason, host=host)
        _record(tripped, said, now)
    return tripped


def switch_off(fuse: Fuse, automation: Automation, by: str, reason: str, now: Moment) -> Fuse:
    """The fuse, switched off by a person; if already off, with the earlier author and reason."""
    changed = copy_of(fuse)
    if not switch_of(changed, automation).off:
        switch_of(changed, automation).CopyFrom(Switch(off=True, reason=reason, by=by, time=now.wall))
        _record(changed, Switching(time=now.wall, automation=automation, off=True, by=by, reason=reason), now)
    return changed


def switch_on(
    fuse: Fuse,
    automation: Automation,
    counters: Iterable[str],
    by: str,
    reason: str,
    now: Moment,
    credits_: Sequence[Credit] = (),
) -> Fuse:
    """The fuse, switched on by a person: its counters restart at zero. New credits replace the old ones.

    `counters`: those that this automation uses. Already on: nothing is reset, so that nobody gets around a limit
    by switching on repeatedly; only credits change.
    """
    changed = copy_of(fuse)
    was_off, mine = switch_of(changed, automation).off, set(counters)
    cleared = [m for m in changed.mark if m.counter in mine] if was_off else []
    for mark in cleared:
        changed.mark.remove(mark)
    if was_off:
        switch_of(changed, automation).CopyFrom(Switch(by=by, reason=reason, time=now.wall))
    if credits_:
        _replace_credits(changed, mine, credits_)
    if was_off or credits_:
        said = Switching(time=now.wall, automation=automation, by=by, reason=reason, marks_cleared=len(cleared))
        said.credit.extend(credits_)
        _record(changed, said, now)
    return changed


def counters_of(fuse: Fuse, automation: Automation, dns_counter: str) -> set[str]:
    """The counters of one automation: DNS has one, healing all others."""
    named = {m.counter for m in fuse.mark} | {c.counter for c in fuse.credit}
    return {dns_counter} if automation is Automation.DNS else named - {dns_counter}


def _is_counted_everywhere(fuse: Fuse, limits: Limits, use: LimitUse, now_ms: int) -> bool:
    pairs = limit_of(limits, use.counter).pair
    return all(use.host in hosts_in_window(fuse, use.counter, pair.period_s, now_ms) for pair in pairs)


def _add_mark(fuse: Fuse, use: LimitUse, now: Moment, *, by_credit: bool, credit_until_ms: int = 0) -> Fuse:
    """Add a mark in place of the host's earlier one: a window needs only the newest, as it expires last."""
    for mark in [m for m in fuse.mark if (m.counter, m.host, m.by_credit) == (use.counter, use.host, by_credit)]:
        fuse.mark.remove(mark)
    fuse.mark.append(
        Mark(
            counter=use.counter,
            host=use.host,
            at_ms=now.ms,
            time=now.wall,
            by_credit=by_credit,
            operation_id=use.operation_id,
            credit_until_ms=credit_until_ms,
        )
    )
    return fuse


def _forget(fuse: Fuse, limits: Limits, now_ms: int) -> Fuse:
    """Drop marks that are in no window any more; paid ones are kept for the ledger, up to a limit."""
    paid = [m for m in fuse.mark if m.by_credit][:-_KEPT_CREDIT_MARKS]
    old = [m for m in fuse.mark if m.at_ms <= now_ms - _longest_ms(limits, m.counter)]
    for mark in [*paid, *(m for m in old if m not in paid)]:
        fuse.mark.remove(mark)
    return fuse


def _longest_ms(limits: Limits, counter: str) -> int:
    longest = max((pair.period_s for pair in limit_of(limits, counter).pair), default=MAX_PERIOD_S)
    return longest * 1000


def _replace_credits(fuse: Fuse, counters: set[str], new: Sequence[Credit]) -> None:
    kept = [c for c in fuse.credit if c.counter not in counters and c.counter not in {n.counter for n in new}]
    del fuse.credit[:]
    fuse.credit.extend([*kept, *new])


def _record(fuse: Fuse, switching: Switching, now: Moment) -> None:
    switching.at_ms = now.ms
    fuse.switching.insert(0, switching)
    del fuse.switching[_KEPT_SWITCHINGS:]
