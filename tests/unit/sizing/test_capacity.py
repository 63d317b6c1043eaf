"""How many machines a workload takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hq.sizing.capacity import BUSY, Workload, busy_share, capacity_plan, location_need
from hq.sizing.costs import read_costs

COSTS = read_costs()


def test_a_small_installation_takes_three_machines_in_one_location() -> None:
    plan = capacity_plan(COSTS, Workload(instances=1_000, services=100, lookups=10, watchers=10))

    assert (plan.workload.locations, plan.workload.replicas, plan.gateways) == (1, 3, 0)
    assert plan.fits


def test_a_plan_carries_the_workload_with_one_replica_down() -> None:
    plan = capacity_plan(COSTS, Workload(lookups=20_000))

    assert plan.need_with_one_down.cores_per_replica <= BUSY
    fewer = replace(plan.workload, replicas=plan.workload.replicas - 2)
    assert location_need(COSTS, fewer).first_limit()[1] > 1.0


def test_a_load_too_large_for_one_location_is_split_over_several() -> None:
    plan = capacity_plan(COSTS, Workload(instances=10_000_000, services=100_000))

    assert plan.fits
    assert plan.workload.locations > 1
    assert plan.gateways >= 2
    assert plan.need.etcd_database_bytes < 8 << 30


def test_a_given_plan_that_does_not_fit_names_its_limit() -> None:
    plan = capacity_plan(COSTS, Workload(per_node=1), replicas=3, locations=1)

    assert not plan.fits
    assert plan.need_with_one_down.first_limit()[0] == "50,000 connections per replica"


def test_locations_share_instances_lookups_and_changes_equally() -> None:
    part = Workload(instances=1_000, lookups=50, changes=20, locations=10).of_location()

    assert (part.instances, part.lookups, part.changes) == (100, 5, 2)


@pytest.mark.parametrize(("calls", "woken"), [(0, 0.0), (1, 1.0), (1_000_000, 0.0)])
def test_an_idle_replica_pays_for_each_wake_and_a_busy_one_hardly(calls: float, woken: float) -> None:
    costs = replace(COSTS, wake_s=0.001)
    work = min(1.0, calls * 1e-6)
    added = busy_share(costs, work, calls) - work
    assert added == pytest.approx(woken * costs.wake_s, abs=1e-5)


def test_tls_costs_memory_and_cpu() -> None:
    secured, plain = (location_need(COSTS, Workload(secured=given)) for given in (True, False))

    assert secured.memory_bytes_per_replica > plain.memory_bytes_per_replica
    assert secured.cores_per_replica > plain.cores_per_replica
