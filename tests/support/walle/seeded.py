"""Wall-E with a bug that was put into it, for runs under faults: `python -m tests.support.walle.seeded BUG serve`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from control.waves import Progress
from walle.executors.over_http import Redfish
from walle.fuses import admission
from walle.fuses import fuse as fuses
from walle.fuses.fuse import Automation
from walle.healing import operation
from walle.main import cli
from walle.process import healer
from walle.work import repairs, waves
from wallepb.v1.host_pb2 import STAGE_CONFIRMING, VERDICT_OK, Host, Operation

Patch = pytest.MonkeyPatch


def a_window_is_half_as_long(patch: Patch) -> None:
    in_window = fuses.hosts_in_window
    patch.setattr(fuses, "hosts_in_window", lambda fuse, name, period_s, now: in_window(fuse, name, period_s // 2, now))


def nobody_confirms(patch: Patch) -> None:
    effects = operation.effects

    def is_ok(one: Operation) -> bool:
        return one.stage == STAGE_CONFIRMING and all(task.verdict == VERDICT_OK for task in one.task)

    patch.setattr(
        healer, "effects", lambda *all_: [one for one in effects(*all_) if one.do is not operation.Do.CONFIRM]
    )
    patch.setattr(healer, "is_confirmed", is_ok)
    patch.setattr(repairs, "is_confirmed", is_ok)


def a_reset_is_sent_twice_to_be_sure(patch: Patch) -> None:
    begin = Redfish.begin

    async def twice(self: Redfish, host: Host) -> str:
        await begin(self, host)
        return await begin(self, host)

    patch.setattr(Redfish, "begin", twice)


def what_fails_counts_at_once(patch: Patch) -> None:
    decide = repairs.decide  # type: ignore[attr-defined]
    patch.setattr(
        repairs, "decide", lambda host, project, near, now, _, *lane: decide(host, project, near, now, 0, *lane)
    )


def a_wave_does_not_wait_for_the_one_before(patch: Patch) -> None:
    next_step, in_work = waves.next_step, (Progress.WORKING, Progress.RETURNING)  # type: ignore[attr-defined]

    def hasty(parts: Any, *more: Any) -> Any:
        parts = [replace(one, progress=Progress.BACK) if one.progress in in_work else one for one in parts]
        return next_step(parts, *more)

    patch.setattr(waves, "next_step", hasty)


def a_limit_of_dns_fixes_switches_healing_off(patch: Patch) -> None:
    trip = fuses.trip

    def both(fuse: Any, _: Automation, *more: Any) -> Any:
        for one in Automation:
            fuse = trip(fuse, one, *more)
        return fuse

    patch.setattr(admission, "trip", both)


# The bug, and the promise that is found broken.
BUGS: Final[dict[Callable[[Patch], None], str]] = {
    a_window_is_half_as_long: "ALLOWED",
    nobody_confirms: "LEAVE",
    a_reset_is_sent_twice_to_be_sure: "ONCE",
    what_fails_counts_at_once: "ITSELF",
    a_wave_does_not_wait_for_the_one_before: "WAVE",
    a_limit_of_dns_fixes_switches_healing_off: "APART",
}


if __name__ == "__main__":
    name = sys.argv.pop(1)
    next(bug for bug in BUGS if bug.__name__ == name)(Patch())
    cli()
