"""The output of commands: lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from google.protobuf.message import Message

from hqcli.formats import is_data, print_data
from hqcli.terminal import print_table
from wallepb.v1.host_pb2 import HostState, HostStatus, OperationKind, Stage
from wallepb.v1.project_pb2 import Fuse, IncidentBounds, Limit, Scenario, ScenarioStage, Severity
from wallepb.v1.service_pb2 import GetHostResponse


def print_if_data(answer: Message, output: str) -> bool:
    """Print the whole answer if a format for programs was asked for."""
    if is_data(output):
        print_data(answer, output)
    return is_data(output)


def word(enum: Any, value: int) -> str:
    """`HOST_STATE_FREE` is `free`."""
    prefix = _PREFIXES[enum]
    return str(enum.Name(value)).removeprefix(prefix).lower().replace("_", "-")


_PREFIXES = {
    HostState: "HOST_STATE_",
    HostStatus: "HOST_STATUS_",
    OperationKind: "OPERATION_KIND_",
    Stage: "STAGE_",
    ScenarioStage: "SCENARIO_STAGE_",
    Severity: "SEVERITY_",
}


def table(rows: Sequence[Sequence[str]], head: Sequence[str], none: str = "") -> None:
    """Print a table. `none`: printed on stderr instead of an empty one."""
    if none and not rows:
        click.echo(none, err=True)
    else:
        print_table(head, rows, whole=True)


def host_row(shown: GetHostResponse) -> tuple[str, ...]:
    host = shown.host
    failing = ",".join(check.name for check in host.check if check.failing)
    doing = f"{word(OperationKind, host.operation.kind)}/{word(Stage, host.operation.stage)}"
    status = doing if host.HasField("operation") else word(HostStatus, host.status)
    place = "/".join(filter(None, (host.location.dc, host.location.rack, host.location.switch)))
    return host.name, host.project, word(HostState, host.state), status, failing or "-", place or "-"


HOST_HEAD = ("HOST", "PROJECT", "STATE", "STATUS", "FAILING", "PLACE")


def host_lines(shown: GetHostResponse) -> list[str]:
    """Everything about one host."""
    host = shown.host
    lines = ["  ".join(host_row(shown)), f"would do: {shown.decision}"]
    lines += [f"not done: {shown.blocked}"] if shown.blocked else []
    lines += [f"reason: {host.status_reason}"] if host.status_reason else []
    if host.HasField("operation"):
        lines.append(f"operation {host.operation.id} by {host.operation.by}: {host.operation.message}")
        lines += [f"  task {task.id} at {task.cms}: {task.message or 'ok'}" for task in host.operation.task]
    if host.HasField("dns_operation"):
        lines.append(f"dns-fix {host.dns_operation.id}: {host.dns_operation.message}")
    lines += [
        f"check {c.name}: {'fails' if c.failing else 'unknown' if c.unknown else 'fine'} ({c.source}) {c.text}".rstrip()
        for c in host.check
    ]
    lines += [f"before: {word(OperationKind, one.kind)}: {one.message}" for one in host.history[:5]]
    return lines


def fuse_lines(fuse: Fuse) -> list[str]:
    lines = []
    for name, switch in (("healing", fuse.healing), ("dns", fuse.dns)):
        lines.append(f"{name}: off, {switch.reason} ({switch.by})" if switch.off else f"{name}: on")
    lines += [f"credit {credit.counter}: {credit.left} left" for credit in fuse.credit if credit.left]
    return lines


def limit_text(limit: Limit) -> str:
    return ", ".join(f"{_period(pair.period_s)}:{pair.count}" for pair in limit.pair)


def incident_text(bounds: IncidentBounds) -> str:
    """Bounds of incidents as the server reads them: what is not set has its default."""
    begins = bounds.begins_percent or 50
    ends = bounds.ends_percent or begins // 2
    return f"incidents: at least {bounds.min_hosts or 3} hosts and more than {begins} % fail, until {ends} % do"


def scenario_row(scenario: Scenario) -> tuple[str, ...]:
    return scenario.id, word(ScenarioStage, scenario.stage), scenario.ticket, str(len(scenario.host)), scenario.message


def _period(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
