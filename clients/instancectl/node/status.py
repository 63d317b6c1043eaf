"""The output of `instancectl status` about a node's agent: a line for each instance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from instancectl import status as instance_status
from instancectl.node.hosted import HostedInstance

COLUMNS = ("INSTANCE", "REVISION", "INSTALLED", "READY", "RESTARTS", "TROUBLE")


def snapshot(node: str, trouble: str, held: list[str], instances: Mapping[str, HostedInstance]) -> dict[str, Any]:
    """Everything about the agent and its instances; no secret's value is among it."""
    return {
        "node": node,
        "agent_pid": os.getpid(),
        "trouble": trouble,
        "absences_held": held,
        "instances": [{"id": name, **_describe_instance(instances[name])} for name in sorted(instances)],
    }


def _describe_instance(instance: HostedInstance) -> dict[str, Any]:
    if (directory := instance.directory) is None:
        return {"trouble": instance.trouble, "revisions": []}
    found = instance_status.snapshot(directory.supervisor, directory.sink)
    return {"trouble": found["source_trouble"] or found["fenced"] or found["reports"].get("trouble", ""), **found}


def is_as_wanted(found: dict[str, Any]) -> bool:
    """Whether HQ can be watched, and every instance is as desired."""
    return not found["trouble"] and all(instance_status.is_as_wanted(each) for each in found["instances"])


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each instance, with the revision that shall run."""
    return [(each["id"], *_cells(each)) for each in found["instances"]]


def _cells(instance: dict[str, Any]) -> tuple[str, ...]:
    revision = next((each for each in instance["revisions"] if each["target"] == "READY"), None)
    if revision is None:
        return "-", "-", "-", "-", instance["trouble"] or "-"
    status = revision["status"]
    restarts = sum(container.get("restartCount", 0) for container in status.get("container", []))
    verdicts = (instance_status.verdict(status, name) for name in ("installed", "ready"))
    return revision["id"], *verdicts, str(restarts), instance["trouble"] or "-"


def remarks(found: dict[str, Any]) -> list[str]:
    """Return the lines that do not fit the table."""
    lines = [f"the agent of node {found['node']}, pid {found['agent_pid']}, {len(found['instances'])} instances"]
    if held := found["absences_held"]:
        names = ", ".join(held)
        lines.append(f"HQ does not know {names} any more, many at once: if that is meant, run instancectl confirm")
    return lines + ([f"HQ: {found['trouble']}"] if found["trouble"] else [])
