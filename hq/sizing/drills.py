"""Bad days, played in a simulation: what a workload's replicas go through, and what to do if they do not stand it.

Rates that go on meanwhile take their share of each core; what the day adds is played event by event.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hq.sizing.capacity import (
    MAX_CONNECTIONS,
    MAX_ETCD_BYTES,
    NETWORK_BYTES_PER_S,
    Workload,
    location_need,
    lookup_cost_s,
)
from hq.sizing.costs import MeasuredCosts
from hq.sizing.crash_loop import CALL_S, CrashLoopingInstances
from hq.sizing.reconnecting import MAX_BACKOFF_S, ReconnectingClients, return_cost
from hq.sizing.simulator import EventQueue, ServingLine

STALE_S = 10.0  # a replica that is so far behind says so, and its clients leave it
_TIMEOUT_S = 600.0  # a silence of so long expires
_BACK_S = 60.0  # what takes longer than a minute is an incident of its own
_CRASHING = 0.05
_COMPACTED_S = 600.0  # etcd keeps what changed for so long
_ROLLING, _SWITCH_S = 0.01, 30.0
_HOT = 100_000


@dataclass(frozen=True, slots=True)
class DrillFigure:
    """One number that came out of a drill, and the most that it may be (None: any)."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def holds(self) -> bool:
        return self.limit is None or self.value <= self.limit


@dataclass(frozen=True, slots=True)
class DrillReport:
    """The result of a drill. `remedy`: what to do if a figure is over its limit."""

    figures: tuple[DrillFigure, ...]
    remedy: str

    @property
    def holds(self) -> bool:
        return all(figure.holds for figure in self.figures)


def replica_lost(costs: MeasuredCosts, workload: Workload, seed: int) -> DrillReport:
    """One replica is killed: its host agents and watchers come to the others, all at once."""
    part, queue = workload.of_location(), EventQueue()
    rest = replace(part, replicas=max(1, part.replicas - 1))
    need = location_need(costs, rest)
    lines = [ServingLine(queue, 1 - need.cores_per_replica) for _ in range(part.replicas - 1)]
    count = round(location_need(costs, part).connections_per_replica)
    clients = ReconnectingClients(queue, count, return_cost(costs, part), random.Random(seed))
    clients.serve_from(0.0, lines, refusing=1)
    clients.cut()
    queue.run(_TIMEOUT_S)
    return DrillReport(
        (
            *_return_figures(clients, 0.0),
            DrillFigure("connections of each that is left", need.connections_per_replica, "", MAX_CONNECTIONS),
        ),
        "run more replicas, so that each carries fewer connections",
    )


def location_lost(costs: MeasuredCosts, workload: Workload, seed: int) -> DrillReport:
    """All replicas and etcd of a location are away for ten minutes, and come back without checkpoints."""
    part, queue = workload.of_location(), EventQueue()
    need = location_need(costs, part)
    lines = [ServingLine(queue, 1 - need.cores_per_replica) for _ in range(part.replicas)]
    count = round(need.connections_per_replica * part.replicas)
    clients = ReconnectingClients(queue, count, return_cost(costs, part, reports=True), random.Random(seed))
    serves_s = need.start_s
    clients.serve_from(serves_s, lines)
    queue.at(max(0.0, serves_s - MAX_BACKOFF_S), lambda: clients.cut(failures=10))
    if workload.locations > 1:  # a gateway asks each location for what it follows, at one of the replicas
        queue.at(serves_s, lambda: _give(lines[0], part.instances * costs.listed_s))
    queue.run(serves_s + _TIMEOUT_S)
    return DrillReport(
        (
            DrillFigure("serves again after etcd is back", serves_s, "s", _TIMEOUT_S),
            DrillFigure("... with a checkpoint", need.restart_s, "s"),
            *_return_figures(clients, serves_s),
            DrillFigure("reports not yet served in the end", max(line.wait_s() for line in lines), "s", STALE_S),
        ),
        "run more locations, each smaller, or more replicas",
    )


def bad_push(costs: MeasuredCosts, workload: Workload, seed: int) -> DrillReport:
    """A roll-out makes 5 % of all instances crash again and again, for ten minutes."""
    part, queue, count = workload.of_location(), EventQueue(), round(workload.of_location().instances * _CRASHING)
    need, watching = location_need(costs, part), part.watchers / max(1, part.services)
    lines = [ServingLine(queue, 1 - need.cores_per_replica) for _ in range(part.replicas)]
    events_s = watching / part.replicas * costs.event_s
    instances = CrashLoopingInstances(
        queue, lines, count, costs.change_s + events_s, costs.followed_s + events_s, random.Random(seed)
    )
    instances.begin()
    queue.run(_COMPACTED_S)
    last = sum(instances.reports[second] for second in range(540, 600)) / 60
    written = sum(instances.reports.values()) * costs.etcd_change_bytes
    cores = need.cores_per_replica + last * _change_cost_s(costs, part)
    return DrillReport(
        (
            DrillFigure("instances that crash", count, ""),
            DrillFigure("status changes, at most", max(instances.reports.values(), default=0), "/s"),
            DrillFigure("status changes, after nine minutes", last, "/s"),
            DrillFigure("a change is acknowledged after, at most", instances.longest_s, "s", CALL_S),
            DrillFigure("reports that took too long and came again", instances.failed, "", 0),
            DrillFigure("of each replica's core, after nine minutes", cores, "", 1.0),
            DrillFigure("etcd's database", (need.etcd_database_bytes + written) / 1e9, "GB", MAX_ETCD_BYTES / 1e9),
        ),
        "run more locations, each smaller, or more replicas; nothing is lost meanwhile, but all changes come late",
    )


def leader_lost(costs: MeasuredCosts, workload: Workload, seed: int) -> DrillReport:
    """etcd's leader is lost while 1 % of all instances are being switched, half a minute each."""
    del seed  # nothing is left to chance
    part, queue = workload.of_location(), EventQueue()
    need, each_s, tick_s = location_need(costs, part), _change_cost_s(costs, part), 0.1
    line = ServingLine(queue, 1 - need.cores_per_replica)
    rate = part.instances * _ROLLING * 2 / _SWITCH_S
    done: list[tuple[float, float]] = []  # when it was asked for, when it is acknowledged

    def change(asked_s: float) -> None:
        done.append((asked_s, line.add(rate * tick_s * each_s)))

    for tick in range(600):
        asked_s, away_s = tick * tick_s, costs.leader_s
        served_s = 30 + away_s if 30 <= asked_s < 30 + away_s else asked_s
        queue.at(served_s, lambda asked_s=asked_s: change(asked_s))  # type: ignore[misc]
    queue.run(CALL_S * 60)
    late = [asked for asked, end in done if end - asked > 1.0]
    return DrillReport(
        (
            DrillFigure("status changes", rate, "/s"),
            DrillFigure("of each replica's core", need.cores_per_replica + rate * each_s, "", 1.0),
            DrillFigure("longest write", max(end - asked for asked, end in done), "s", CALL_S),
            DrillFigure("writes take over a second for", max(late) - min(late) + tick_s if late else 0.0, "s"),
        ),
        "smaller batches of roll-outs, or more locations",
    )


def hot_service(costs: MeasuredCosts, workload: Workload, seed: int) -> DrillReport:
    """One service has 100,000 instances and a hundredth of all lookups and watchers; then a replica is lost."""
    del seed
    part, queue = workload.of_location(), EventQueue()
    size, n = min(_HOT, part.instances), part.replicas
    bytes_each = size * costs.frame_bytes
    each_s = lookup_cost_s(costs, size, secured=part.secured)
    watchers = max(1, part.watchers // 100)
    lookups = part.lookups / 100 / n
    rest = max(1, n - 1)
    network, core = ServingLine(queue), ServingLine(queue)
    for _ in range(-(-watchers // n // rest)):
        network.add(bytes_each / NETWORK_BYTES_PER_S)
        core.add(each_s)
    return DrillReport(
        (
            DrillFigure("one answer", bytes_each / 1e6, "MB"),
            DrillFigure("work for one answer", each_s * 1e3, "ms"),
            DrillFigure("of a core, for these lookups", lookups * each_s, "", 0.7),
            DrillFigure("of 1 Gbit/s, for these lookups", lookups * bytes_each / NETWORK_BYTES_PER_S, "", 0.7),
            DrillFigure("all watchers of a lost replica have it again", network.longest_wait_s, "s", _BACK_S),
            DrillFigure("a roll-out of 10 % of it, to each watcher", 2 * size / 10 * costs.frame_bytes / 1e6, "MB"),
        ),
        "watch instead of asking, ask for fields that are needed (field_mask), and split the service",
    )


DRILLS: Mapping[str, Callable[[MeasuredCosts, Workload, int], DrillReport]] = {
    "replica-lost": replica_lost,
    "location-lost": location_lost,
    "bad-push": bad_push,
    "leader-lost": leader_lost,
    "hot-service": hot_service,
}


def _give(line: ServingLine, work_s: float) -> None:
    line.add(work_s)


def _change_cost_s(costs: MeasuredCosts, part: Workload) -> float:
    """Work of each replica for a change anywhere in the location, with all who watch it."""
    n, watching = part.replicas, part.watchers / max(1, part.services)
    return costs.change_s / n + costs.followed_s * (n - 1) / n + watching / n * costs.event_s


def _return_figures(clients: ReconnectingClients, since_s: float) -> tuple[DrillFigure, ...]:
    times_s = sorted(time_s - since_s for time_s in clients.back_s)
    half_s, all_s = (times_s[len(times_s) // 2], times_s[-1]) if times_s else (0.0, 0.0)
    return (
        DrillFigure("clients that come back", clients.count * clients.weight, ""),
        DrillFigure("half are back after", half_s, "s"),
        DrillFigure("all are back after", all_s, "s", _BACK_S),
        DrillFigure("not back after ten minutes", (clients.count - len(times_s)) * clients.weight, "", 0),
        DrillFigure("streams opened for that", clients.attempts * clients.weight, ""),
    )
