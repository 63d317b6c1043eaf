"""Metrics of Wall-E; read from the records at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from control.metrics import memory_metrics
from serving.telemetry.metrics import Declared
from walle.fuses.fuse import Automation, switch_of
from walle.process.automaton import WalleSupervisor
from walle.tables import NAMES
from wallepb.v1.host_pb2 import HOST_STATUS_DEAD, HostState, HostStatus, Operation, Stage
from wallepb.v1.project_pb2 import ScenarioStage

Counted = Mapping[tuple[str, ...], float]


def _fuses_out(walle: WalleSupervisor) -> Counted:
    """1 for each switch that is off; all projects are shown, so that an alert has something to compare."""
    names = [*walle.projects, "global"]
    shown: dict[tuple[str, ...], float] = {(name, str(one)): 0.0 for name in names for one in Automation}
    for fuse in walle.fuses.values():
        shown |= {(fuse.id, str(one)): 1.0 for one in Automation if switch_of(fuse, one).off}
    return shown


def _hosts(walle: WalleSupervisor) -> Counted:
    return Counter(
        (
            host.project,
            HostState.Name(host.state).removeprefix("HOST_STATE_").lower(),
            HostStatus.Name(host.status).removeprefix("HOST_STATUS_").lower(),
        )
        for host in walle.hosts.values()
    )


def _operations(walle: WalleSupervisor) -> Counted:
    return Counter((NAMES[one.kind], Stage.Name(one.stage).removeprefix("STAGE_").lower()) for one in _under_way(walle))


def _under_way(walle: WalleSupervisor) -> Iterator[Operation]:
    for host in walle.hosts.values():
        if host.HasField("operation"):
            yield host.operation
        if host.HasField("dns_operation"):
            yield host.dns_operation


def _failing(walle: WalleSupervisor) -> Counted:
    return Counter(
        (host.project, check.name)
        for host in walle.hosts.values()
        if host.status != HOST_STATUS_DEAD
        for check in host.check
        if check.failing
    )


def _oldest_s(walle: WalleSupervisor) -> float:
    now_ms = walle.ledger.now().ms
    since = [one.since_ms for one in _under_way(walle)]
    return (now_ms - min(since)) / 1000 if since else 0.0


def _scenarios(walle: WalleSupervisor) -> Counted:
    stages = (ScenarioStage.Name(one.stage) for one in walle.scenarios.values())
    return Counter((stage.removeprefix("SCENARIO_STAGE_").lower(),) for stage in stages)


def _by_severity(counted: Callable[[WalleSupervisor], Mapping[str, int]]) -> Callable[[WalleSupervisor], Counted]:
    return lambda walle: {(severity,): float(count) for severity, count in counted(walle).items()}


METRICS: Final[tuple[Declared[WalleSupervisor], ...]] = (
    Declared("gauge", "walle_acting", "1 at the leader.", lambda walle: float(walle.controller.is_acting)),
    Declared(
        "gauge",
        "walle_stopped",
        "1 if nothing may begin at this process: frozen, stopped, not opened; 0 elsewhere.",
        lambda walle: float(walle.controller.is_acting and bool(walle.controller.why_nothing_begins())),
    ),
    Declared(
        "gauge",
        "walle_fuse_tripped",
        "1 while an automation is off: its fuse has tripped, or somebody switched it off.",
        _fuses_out,
        ("fuse", "automation"),
    ),
    Declared("gauge", "walle_hosts", "Hosts.", _hosts, ("project", "state", "status")),
    Declared("gauge", "walle_operations", "Operations under way.", _operations, ("kind", "stage")),
    Declared("gauge", "walle_oldest_stage_seconds", "Longest time of an operation in its stage.", _oldest_s),
    Declared(
        "gauge", "walle_failing_checks", "Failing checks of hosts that are not dead.", _failing, ("project", "check")
    ),
    Declared(
        "gauge",
        "walle_incidents",
        "Racks and switches whose hosts fail together.",
        lambda walle: float(len(walle.world.incidents.open)),
    ),
    Declared("gauge", "walle_scenarios", "Scenarios.", _scenarios, ("stage",)),
    Declared(
        "counter",
        "walle_notices_sent_total",
        "Notices delivered.",
        _by_severity(lambda walle: walle.outbox.sent),
        ("severity",),
    ),
    Declared(
        "counter",
        "walle_notices_lost_total",
        "Notices not delivered.",
        _by_severity(lambda w: w.outbox.lost),
        ("severity",),
    ),
    Declared(
        "gauge",
        "walle_notices_waiting",
        "Deliveries of notices that are still to be made.",
        _by_severity(lambda walle: walle.outbox.waiting()),
        ("severity",),
    ),
    Declared(
        "counter",
        "walle_cms_requests_total",
        "Calls to CMSs.",
        lambda walle: {labels: float(count) for labels, count in walle.cms_events.calls.items()},
        ("cms", "action", "result"),
    ),
    *memory_metrics("walle", lambda walle: walle.controller),
)
