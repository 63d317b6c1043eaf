"""The last reports of supervisors take bounded memory."""

from __future__ import annotations

from typing import Any

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.status import LatestReports


def report(name: str) -> pb.ReportStatusRequest:
    return pb.ReportStatusRequest(instance_id=name, revision=instance_pb2.RevisionStatus(id="r1"))


def rows(heard: LatestReports, now: float) -> list[dict[str, Any]]:
    return heard.rows(lambda _: True, now)


def held(heard: LatestReports) -> int:
    return len(heard._last)  # asking for the rows would forget


def test_supervisors_that_came_and_went_are_forgotten_although_nobody_asks_for_the_status() -> None:
    heard = LatestReports()
    for second in range(10_000):
        heard.note(report(f"i-{second}"), "", float(second))
    assert held(heard) == 3_600
    assert len(rows(heard, 9_999.0)) == 3_600


def test_made_up_ids_take_bounded_memory_and_the_newest_stay() -> None:
    heard = LatestReports()
    heard.note(report("x" * 1_000_000), "NO_ANSWER", 0.0)
    assert not rows(heard, 0.0)
    for number in range(10_005):
        heard.note(report(f"i-{number:05}"), "NOT_FOUND", 0.0)
    heard.note(report("i-00005"), "", 1.0)
    assert held(heard) == 10_000
    assert rows(heard, 1.0)[0]["reported"] == "0 s ago"


def test_a_supervisor_that_goes_on_reporting_is_not_forgotten() -> None:
    heard = LatestReports()
    for second in range(0, 7_200, 60):
        heard.note(report("stays"), "", float(second))
    assert [row["instance"] for row in rows(heard, 7_200.0)] == ["stays"]
