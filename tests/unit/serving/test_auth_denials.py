"""Denied calls in the audit log: each while they are few, sums when somebody floods, and none is forgotten."""

from __future__ import annotations

from serving.auth.audit import Denials, Line
from serving.clock import ManualClock


def denied(number: int, identity: str = "") -> Line:
    return Line(identity, f"10.0.0.1:{number}", "S/M", "", "deny", "read", "UNAUTHENTICATED", 0, f"r-{number}")


def test_a_stranger_who_floods_gets_few_lines_that_stand_for_all_of_its_calls() -> None:
    clock, lines = ManualClock(), list[Line]()
    denials = Denials(lines.append, clock)
    for number in range(100_000):
        denials.record("10.0.0.1", denied(number))
        clock.advance(0.0001)
    denials.tell_rest(all_of_it=True)
    assert len(lines) < 400
    assert sum(line.calls for line in lines) == 100_000
    assert lines[-1].request_id == "r-99999"


def test_a_flood_takes_no_line_from_others_and_ends_with_its_sum() -> None:
    clock, lines = ManualClock(), list[Line]()
    denials = Denials(lines.append, clock)
    for number in range(1_000):
        denials.record("10.0.0.1", denied(number))
    denials.record("ann", denied(1, "ann"))
    assert lines[-1] == denied(1, "ann")
    denials.tell_rest()
    assert lines[-1] == denied(1, "ann"), "not yet"
    clock.advance(1.0)
    denials.tell_rest()
    assert lines[-1] == denied(999)._replace(calls=800)
    clock.advance(3_600.0)
    denials.tell_rest()
    assert not denials.callers(), "who is quiet takes no memory"


def test_many_strangers_take_bounded_memory_and_each_has_its_line() -> None:
    lines: list[Line] = []
    denials = Denials(lines.append, ManualClock())
    for number in range(30_000):
        denials.record(f"10.0.{number}", denied(number))
    assert len(denials.callers()) <= 10_000
    assert len(lines) == 30_000
