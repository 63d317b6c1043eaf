"""Hosts and projects to decide on."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from walle.fuses.fuse import Moment
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_READY,
    Check,
    Host,
    HostState,
    HostStatus,
    LastRepair,
    Location,
    OperationKind,
    Outcome,
)
from wallepb.v1.project_pb2 import Cms, Project

NOW_MS = 1_000_000_000


def at(ms: int = NOW_MS) -> Moment:
    return Moment(ms, Timestamp(seconds=1_700_000_000 + ms // 1000))


def a_host(
    name: str = "h1",
    *failing: str,
    since_ms: int = 0,
    rack: str = "",
    switch: str = "",
    state: HostState = HOST_STATE_ASSIGNED,
    status: HostStatus = HOST_STATUS_READY,
) -> Host:
    host = Host(
        name=name, project="web", listed=True, state=state, status=status, location=Location(rack=rack, switch=switch)
    )
    host.check.extend(Check(name=check, failing=True, since_ms=since_ms) for check in failing)
    return host


def repaired(host: Host, check: str, step: int, kind: OperationKind, outcome: Outcome, at_ms: int) -> Host:
    host.last_repair.CopyFrom(LastRepair(check=check, step=step, kind=kind, outcome=outcome, at_ms=at_ms))
    return host


def a_project(*cms: Cms) -> Project:
    project = Project(id="web", owners=["alice"])
    project.cms.extend(cms or [Cms(url="default", version="v1.0", max_busy_hosts=5)])
    return project
