"""What `instancectl status --host-agent` shows: all revisions of a node and whether HQ has heard of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clients.instancectl.reports.subject import Subject
from hqpb.v1 import instance_pb2

COLUMNS = ("INSTANCE", "REVISION", "NODE", "INSTALLED", "READY", "REPORTED")

_WORDS = {instance_pb2.CONDITION_STATUS_TRUE: "yes", instance_pb2.CONDITION_STATUS_FALSE: "no"}


def told(subjects: Iterable[Subject], refused: Iterable[Any]) -> list[dict[str, Any]]:
    """Each revision as it is reported, in order of their ids."""
    silenced = set(refused)
    return [
        {
            "instance": subject.id.instance_id,
            "revision": subject.id.revision_id,
            "node": subject.id.node,
            "installed": _word(subject.status.installed),
            "ready": _word(subject.status.ready),
            "reported": "refused" if subject.id in silenced else "not yet" if subject.is_news else "yes",
        }
        for subject in sorted(subjects, key=lambda subject: subject.id)
    ]


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each revision."""
    names = [column.lower() for column in COLUMNS]
    return [tuple(str(subject[name]) for name in names) for subject in found["subjects"]]


def remarks(found: dict[str, Any]) -> list[str]:
    """What does not fit the table."""
    last, due = found["last_taken_s_ago"], found["next_in_s"]
    when = "nothing was taken yet" if last is None else f"the last one {last} s ago"
    lines = [f"reports to {found['to']}, {when}" + (f", the next one in {due} s" if found["subjects"] else "")]
    lines += [f"{subject}: {why}" for subject, why in found["refused"].items()]
    return lines + ([f"reports: {found['trouble']}"] if found["trouble"] else [])


def is_reported(found: dict[str, Any]) -> bool:
    """HQ has everything that supervisors said, and there is something."""
    return bool(found["subjects"]) and all(subject["reported"] == "yes" for subject in found["subjects"])


def _word(condition: instance_pb2.Condition) -> str:
    return _WORDS.get(condition.status, "unknown")
