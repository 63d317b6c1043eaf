"""Drills: what the simulation must show whatever the costs are."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hq.sizing import reconnecting
from hq.sizing.capacity import Workload
from hq.sizing.costs import read_costs
from hq.sizing.crash_loop import CrashLoopingInstances
from hq.sizing.drills import DRILLS, DrillReport
from hq.sizing.reconnecting import ReconnectingClients, ReturnCost
from hq.sizing.simulator import EventQueue, ServingLine
from serving.transport import server

COSTS = read_costs()
SMALL = Workload(instances=20_000, services=200, lookups=100, watchers=100, changes=2)


def figures(report: DrillReport) -> dict[str, float]:
    return {figure.what: figure.value for figure in report.figures}


@pytest.mark.parametrize("name", DRILLS)
def test_a_small_installation_survives_every_drill(name: str) -> None:
    report = DRILLS[name](COSTS, SMALL, 1)

    assert report.holds, report


@pytest.mark.parametrize("name", DRILLS)
def test_a_drill_repeats_with_its_seed(name: str) -> None:
    assert DRILLS[name](COSTS, SMALL, 7) == DRILLS[name](COSTS, SMALL, 7)


def test_all_clients_of_a_lost_replica_come_back() -> None:
    report = figures(DRILLS["replica-lost"](COSTS, SMALL, 1))

    assert report["clients that come back"] == pytest.approx(SMALL.instances / SMALL.per_node / 3, rel=0.2)
    assert report["not back after ten minutes"] == 0
    assert report["half are back after"] < report["all are back after"] < 10


def test_ten_locations_lose_a_tenth_of_the_clients() -> None:
    all_in_one = figures(DRILLS["location-lost"](COSTS, SMALL, 1))
    one_of_ten = figures(DRILLS["location-lost"](COSTS, replace(SMALL, locations=10), 1))

    assert one_of_ten["clients that come back"] == pytest.approx(all_in_one["clients that come back"] / 10, rel=0.01)


@pytest.mark.long
def test_more_replicas_take_clients_back_sooner() -> None:
    many = replace(SMALL, instances=400_000)
    times = [
        figures(DRILLS["location-lost"](COSTS, replace(many, replicas=n), 1))["all are back after"] for n in (2, 6)
    ]

    assert times[1] < times[0]


def come_back(backlog: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many of 20,000 clients one replica has taken back after two minutes."""
    monkeypatch.setattr(reconnecting, "BACKLOG", backlog)
    queue = EventQueue()
    line = ServingLine(queue, share=0.4)
    clients = ReconnectingClients(queue, 20_000, ReturnCost(1.2e-3, 0.4e-3, 0.5e-3, 3.0), random.Random(1))
    clients.serve_from(0.0, [line])
    clients.cut()
    queue.run(120.0)
    return len(clients.back_s) * clients.weight


@pytest.mark.long
def test_a_long_backlog_wastes_the_work_of_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that waits beyond its patience is served in vain, and reconnects."""
    assert come_back(512, monkeypatch) == 20_000
    assert come_back(8_192, monkeypatch) < 20_000


def test_the_simulated_backlog_is_that_of_the_transport() -> None:
    assert reconnecting.BACKLOG == server._BACKLOG


def test_a_client_in_the_backlog_is_served_before_it_gives_up() -> None:
    """At a replica that is 60 % busy; a longer backlog would be work for clients that have left."""
    cost = reconnecting.return_cost(COSTS, Workload())

    assert reconnecting.BACKLOG * cost.open_s / 0.4 < cost.patience_s


def test_an_instance_has_at_most_one_report_under_way() -> None:
    """A slow replica gets the newest state, not each one: at most one report per instance waits."""
    queue = EventQueue()
    line = ServingLine(queue)
    instances = CrashLoopingInstances(queue, [line], 50, 0.1, 0.0, random.Random(1))
    instances.begin()
    waiting = []
    for second in range(120):
        queue.run(second)
        waiting.append(line.waiting)

    assert max(waiting) <= 50
    assert sum(instances.reports.values()) <= 1_200 + 50  # what 0.1 s each allows


def test_a_crash_loop_slows_down() -> None:
    queue = EventQueue()
    instances = CrashLoopingInstances(queue, [ServingLine(queue)], 100, 1e-6, 0.0, random.Random(1))
    instances.begin()
    queue.run(600.0)
    first, last = (sum(instances.reports[s] for s in range(a, a + 60)) / 60 for a in (30, 540))

    assert last < first / 2
    assert last == pytest.approx(100 * 2 / 47, rel=0.2)  # a run of 2 s after 30 to 60 s
