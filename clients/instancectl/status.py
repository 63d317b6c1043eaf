"""The output of `instancectl status`: everything about a supervisor and its instance, and the lines for a person."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import ContainerStatus
from instancectl.reports.sink import StatusSink
from instancectl.supervisor import Supervisor

COLUMNS = ("REVISION", "TARGET", "INSTALLED", "READY", "CONTAINER", "STATE", "PID", "RESTARTS", "LIMITS", "ISOLATION")
_TARGETS = {instance_pb2.REVISION_TARGET_READY: "READY", instance_pb2.REVISION_TARGET_CREATED: "CREATED"}


def snapshot(supervisor: Supervisor, sink: StatusSink) -> dict[str, Any]:
    """Everything about the supervisor and its instance; no secret's value is among it."""
    desired = supervisor.desired
    return {
        "instance": desired.instance_id if desired else "",
        "node": desired.node if desired else "",
        "spec_version": desired.version if desired else 0,
        "supervisor_pid": os.getpid(),
        "source_trouble": supervisor.wishes.trouble,
        "fenced": supervisor.fenced,
        "reports": sink.describe(),
        "revisions": list(_revisions(supervisor)),
    }


def _revisions(supervisor: Supervisor) -> Iterator[dict[str, Any]]:
    desired, running = supervisor.desired, supervisor.running
    for key, revision in (desired.by_key if desired else {}).items():
        status = supervisor.statuses.get(key.id)
        runs = running.containers if running and running.key.id == key.id else []
        yield {
            "id": key.id,
            "target": _TARGETS.get(revision.target, "INSTALLED"),
            "status": json_format.MessageToDict(status) if status else {},
            "containers": [
                {
                    "name": s.status.name,
                    "pid": s.pid,
                    "limits": s.limits,
                    "isolation": s.status.isolation,
                    "state": _state(s.status),
                }
                for s in runs
            ],
            "secrets": len(revision.secret),
        }


def _state(status: ContainerStatus) -> str:
    return status.state.WhichOneof("state") or "waiting"


def is_as_wanted(found: dict[str, Any]) -> bool:
    """Whether something is wanted, every revision of it is installed, and the one to run is ready."""
    revisions = found["revisions"]
    return bool(revisions) and all(_is_as_wanted(revision) for revision in revisions)


def _is_as_wanted(revision: dict[str, Any]) -> bool:
    names = {"READY": ("installed", "ready"), "CREATED": ()}.get(revision["target"], ("installed",))
    return all(verdict(revision["status"], name) == "yes" for name in names)


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each container, and for each revision without any."""
    lines = []
    for revision in found["revisions"]:
        status = revision["status"]
        head = (revision["id"], revision["target"], verdict(status, "installed"), verdict(status, "ready"))
        reported = {each["name"]: each for each in status.get("container", [])}
        for container in revision["containers"]:
            restarts = reported.get(container["name"], {}).get("restartCount", 0)
            tail = (
                container["name"],
                container["state"],
                str(container["pid"] or "-"),
                str(restarts),
                container["limits"],
                container["isolation"],
            )
            lines.append((*head, *(cell or "-" for cell in tail)))
        if not revision["containers"]:
            lines.append((*head, *"------"))
    return lines


def verdict(status: dict[str, Any], name: str) -> str:
    """`yes`, or `no:Reason`, of the condition with this name."""
    condition = status.get(name, {})
    held = {"CONDITION_STATUS_TRUE": "yes", "CONDITION_STATUS_FALSE": "no"}.get(condition.get("status", ""), "unknown")
    return held if held == "yes" else f"{held}:{condition.get('reason', '-')}"


def remarks(found: dict[str, Any]) -> list[str]:
    """Return the lines that do not fit the table."""
    reports = found["reports"]
    lines = [f"instance {found['instance'] or '(not known yet)'} on node {found['node'] or '-'}"]
    lines += [f"{r['id']}: {text}" for r in found["revisions"] for text in _messages(r["status"])]
    if found["source_trouble"]:
        lines.append(f"source: {found['source_trouble']}")
    if found["fenced"]:
        lines.append(
            f"fenced: {found['fenced']}, so this instancectl no longer reports it. If that is a mistake, "
            "stop the other one, then restart instancectl."
        )
    taken = reports.get("last_taken_s_ago")
    lines.append(f"reports to {reports['to']}" + (f", the last one {taken} s ago" if taken is not None else ""))
    return lines + ([f"reports: {reports['trouble']}"] if reports.get("trouble") else [])


def _messages(status: dict[str, Any]) -> list[str]:
    conditions = [status.get(name, {}) for name in ("installed", "ready")]
    failed = [c for c in conditions if c.get("status") != "CONDITION_STATUS_TRUE"]
    return [c["message"] for c in failed if c.get("message")]
