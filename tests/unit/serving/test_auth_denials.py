"""Denied and refused calls in the audit log: the first of a minute, then a sum; none is forgotten."""

from __future__ import annotations

import json
from typing import Any

from hqapi.rules import BEGIN, FETCH, REPORT, UPLOAD
from serving.auth.audit import Audit, AuditLine, Denials
from serving.auth.gate import Authenticator
from serving.auth.policy import AccessPolicy
from serving.calls.methods import CHANGED, Call, Touch, UnaryMethod, maybe_await
from serving.clock import ManualClock
from serving.rights.access import Access, Identity, ProofKind
from tests.unit.serving.test_auth_audit import FailingSink


def denied(number: int, identity: str = "", method: str = "S/M") -> AuditLine:
    return AuditLine(identity, f"10.0.0.1:{number}", method, "", "deny", "read", "UNAUTHENTICATED", 0, f"r-{number}")


def test_a_flood_by_one_caller_gets_two_lines_a_minute_that_count_all_of_its_calls() -> None:
    clock, lines = ManualClock(), list[AuditLine]()
    denials = Denials(lines.append, clock)
    for number in range(100_000):
        denials.record("10.0.0.1", denied(number))
        clock.advance(0.001)
    denials.tell_rest(all_of_it=True)
    assert len(lines) == 4
    assert (lines[0], lines[0].calls) == (denied(0), 1)
    assert sum(line.calls for line in lines) == 100_000
    assert lines[-1].request_id == "r-99999"


def test_a_flood_suppresses_no_line_of_other_callers_or_methods_and_ends_with_a_sum() -> None:
    clock, lines = ManualClock(), list[AuditLine]()
    denials = Denials(lines.append, clock)
    for number in range(1_000):
        denials.record("10.0.0.1", denied(number))
    denials.record("ann", denied(1, "ann"))
    denials.record("10.0.0.1", denied(1, method="S/N"))
    assert lines[1:] == [denied(1, "ann"), denied(1, method="S/N")]
    clock.advance(59.0)
    denials.tell_rest()
    assert len(lines) == 3, "not yet"
    clock.advance(1.0)
    denials.tell_rest()
    assert lines[3:] == [denied(999)._replace(calls=999)]
    assert not denials.callers(), "who is quiet takes no memory"


def test_many_denied_callers_take_bounded_memory_and_each_has_a_line() -> None:
    lines: list[AuditLine] = []
    denials = Denials(lines.append, ManualClock())
    for number in range(30_000):
        denials.record(f"10.0.{number}", denied(number))
    assert len(denials.callers()) <= 10_000
    assert len(lines) == 30_000


async def test_many_refused_items_do_not_rotate_lines_of_others_out() -> None:
    sink, clock = FailingSink(), ManualClock()
    gate = Authenticator(AccessPolicy(), None, None, Audit(sink, clock), clock)

    async def run(_request: Any, call: Call) -> Any:
        call.note_write("web-0", 7)
        for number in range(1_000):
            call.note_write(f"web-{number}", outcome="VERSION_CONFLICT")

    batch = gate.audited_run(UnaryMethod("S/Apply", bytes, bytes, run, UPLOAD))
    for _ in range(20):
        await maybe_await(batch(None, Call(access=Access(Identity("ci-web", ProofKind.TOKEN, 0), UPLOAD, {}))))
    gate.denials.tell_rest(all_of_it=True)
    assert len(sink.lines) == 20 + 2, "what was stored, and of what was refused the first and a sum"
    assert sum(map(len, sink.lines)) < 10_000


async def test_endless_calls_of_an_agent_do_not_rotate_lines_of_others_out() -> None:
    """With a line for each of its permitted calls, the files of a day would be gone in minutes."""
    sink, clock = FailingSink(), ManualClock()
    gate = Authenticator(AccessPolicy(), None, None, Audit(sink, clock), clock)

    async def run(_request: Any, call: Call) -> Any:
        for number in range(3):
            call.note_write(f"web-{number}", outcome=CHANGED if call.access.rule is REPORT else "")

    for rule in (BEGIN, FETCH, REPORT):
        calls = gate.audited_run(UnaryMethod(f"S/{rule.name}", bytes, bytes, run, rule))
        for _ in range(500):
            await maybe_await(calls(None, Call(access=Access(Identity("agent/n1", ProofKind.TOKEN, 0), rule, {}))))
    gate.denials.tell_rest(all_of_it=True)
    lines = [json.loads(line) for line in sink.lines]
    assert len(lines) == 3 * 3 * 2, "of each instance the first, and a sum"
    assert sum(line["calls"] for line in lines) == 3 * 3 * 500
    assert {line["key"] for line in lines} == {"web-0", "web-1", "web-2"}


def test_refused_requests_are_not_kept_in_full_for_the_minute() -> None:
    """A line of each method and outcome is held back: with keys of megabytes that would be gigabytes."""
    lines = list[AuditLine]()
    denials = Denials(lines.append, ManualClock())
    for _ in range(2):
        denials.record("ann", denied(1, "ann")._replace(key="k" * 3_000_000))
    denials.tell_rest(all_of_it=True)
    assert (len(lines[-1].key), lines[-1].calls) == (512, 1)


def test_audit_of_a_batch_notes_what_it_touched_without_a_copy_for_each_item() -> None:
    """With copies, forty thousand refused items would hold the loop up for half a minute."""
    call = Call()
    assert call.touches == ()
    call.note_write("h1", outcome="PERMISSION_DENIED")
    noted = call.touches
    call.note_write("h2", 7)
    assert call.touches is noted
    assert list(noted) == [Touch("h1", outcome="PERMISSION_DENIED"), Touch("h2", 7)]
    assert Call().touches == ()
