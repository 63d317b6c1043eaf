"""The measured costs that `hq plan` computes with: hq/sizing/costs.json, made from the results."""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, replace

from hq.sizing.capacity import Workload, busy_share, location_need
from hq.sizing.costs import FILE, MeasuredCosts
from hq.sizing.reconnecting import ReconnectingClients, return_cost
from hq.sizing.simulator import EventQueue, ServingLine
from tests.bench import drills
from tests.bench.results import Results
from tests.bench.stats import line

_HOST_AGENTS = re.compile(r"([\d,]+) host agents with ")
_HANDSHAKE_S = 0.5e-3  # decision 063
_MICRO = 1e-6


def write_costs(costs: MeasuredCosts) -> None:
    """What this version ships with."""
    rounded = {
        name: value if isinstance(value, str) else float(f"{value:.4g}") for name, value in asdict(costs).items()
    }
    FILE.write_text(json.dumps(rounded, indent=1) + "\n")


def measured_costs(results: Results) -> MeasuredCosts:
    """From a run. Fitted to the lookups of all sizes and to the starts with the fewest and the most instances.

    Raises:
        LookupError: a case that is needed was not measured.
    """
    small, large = _sizes(results)[0], _sizes(results)[-1]
    lookup_s, listed_s = line(
        {c.size: _cpu_s(results, c.name) for c in results.sized("Find") if c.name.endswith(", gRPC")}
    )
    start_s, start_each_s = line({n: _fact(results, f"ready to serve, {n:,}") for n in (small, large)})
    restart_s, restart_each_s = line(
        {n: _fact(results, f"serves again after an orderly stop, {n:,}") for n in (small, large)}
    )
    idle = _fact(results, "idle replica") / 100
    frame_bytes = _fact(results, f"encoded bytes each, {large:,}")
    get_s, find_s = (_secured_s(results, case) for case in ("Get, gRPC", "Find 100, gRPC"))
    costs = MeasuredCosts(
        measured=_origin(results),
        lookup_s=lookup_s,
        listed_s=listed_s,
        secured_lookup_s=get_s,
        secured_listed_s=(find_s - get_s) / 100,
        heartbeat_s=_fact(results, f"CPU per heartbeat among {large:,} instances") * _MICRO,
        heard_s=_fact(results, "CPU per heartbeat at another replica") * _MICRO,
        change_s=_fact(results, f"CPU per status change among {large:,} instances") * _MICRO,
        followed_s=_fact(results, "CPU per change at another replica") * _MICRO,
        commit_s=0.0,
        event_s=_fact(results, "1,000 watchers: CPU per event delivered") * _MICRO,
        wake_s=0.0,
        idle=idle,
        watch=(_of_host_agent(results, "replica's processor, watches alone") / 100 - idle) / _host_agents(results),
        return_s=_fact(results, "CPU of a replica per watch that came back") * _MICRO,
        handshake_s=_HANDSHAKE_S,
        base_bytes=_fact(results, "memory of a replica without instances") * 1e6,
        instance_bytes=frame_bytes + _fact(results, f"memory each beyond these, {large:,}"),
        frame_bytes=frame_bytes,
        watch_bytes=_of_host_agent(results, "memory of the replica for each connection and watch") * 1024,
        secured_watch_bytes=_fact(results, "idle watch on a connection of its own: memory, TLS, all at once") * 1024,
        start_s=start_s,
        start_each_s=start_each_s,
        restart_s=restart_s,
        restart_each_s=restart_each_s,
        etcd_heartbeat_bytes=_fact(results, "etcd value and key bytes per heartbeat, at 1,000 heartbeats/s"),
        etcd_change_bytes=_fact(results, "etcd value and key bytes per status change"),
        etcd_each_bytes=_fact(results, f"etcd on disk each, {large:,}"),
        changes_per_transaction=_fact(results, "status changes per etcd transaction"),
        leader_s=_fact(results, "leader of three members killed: writes again after"),
        gateway_share=_followed_share(results),
    )
    costs = replace(costs, commit_s=_commit_s(results, costs))
    return replace(costs, wake_s=_wake_s(results, costs))


def checks(results: Results, costs: MeasuredCosts) -> list[tuple[str, float, float, str]]:
    """(what, predicted, measured, unit) at points that nothing was fitted to."""
    rows: list[tuple[str, float, float, str]] = []
    for size in _sizes(results)[1:-1]:
        need = location_need(costs, Workload(instances=size, replicas=1, watchers=0, per_node=size))
        memory = costs.base_bytes + size * (
            _fact(results, f"encoded bytes each, {size:,}") + _fact(results, f"memory each beyond these, {size:,}")
        )
        rows += [
            (f"memory of a replica, {size:,} instances", need.memory_bytes_per_replica / 1e6, memory / 1e6, "MB"),
            (f"ready to serve, {size:,}", need.start_s, _fact(results, f"ready to serve, {size:,}"), "s"),
        ]
    rows += _mixed_checks(results, costs)
    for size in sorted({int(fact.size) for fact in results.facts if fact.group == drills.GROUP}):
        rows += _drill_checks(results, costs, size)
    return rows


def _drill_checks(results: Results, costs: MeasuredCosts, size: int) -> list[tuple[str, float, float, str]]:
    """A lost replica and a crash loop, as `drills.py` plays them: host agents without TLS, and two replicas."""
    lost, loop = f"a replica is lost, {size:,} instances", f"5 % in a crash loop, {size:,} instances"
    count, queue = round(_fact(results, f"{lost}: host agents that came back")), EventQueue()
    left = ServingLine(queue, 1 - costs.idle)
    clients = ReconnectingClients(queue, count, return_cost(costs, Workload(secured=False)), random.Random(1))
    clients.serve_from(0.0, [left], refusing=1)
    clients.cut()
    queue.run(600.0)
    rate = _fact(results, f"{loop}: status changes")
    load = Workload(size, 1, 0.0, 0, rate, report_interval_s=float("inf"), per_node=size, replicas=1)
    followed = busy_share(costs, costs.idle + rate * costs.followed_s, rate)
    shares = (location_need(costs, load).cores_per_replica, followed)
    predicted = {
        f"{lost}: all back after": (max(clients.back_s), "s"),
        f"{lost}: the other one's processor": (left.busy_s, "s"),
        f"{loop}: processor at the replica that is sent them": (100 * shares[0], "% of a core"),
        f"{loop}: processor at the other one": (100 * shares[1], "% of a core"),
    }
    return [(what, value, _fact(results, what), unit) for what, (value, unit) in predicted.items()]


def _mixed_checks(results: Results, costs: MeasuredCosts) -> list[tuple[str, float, float, str]]:
    lookups, heartbeats = _fact(results, "mixed load: lookups"), _fact(results, "mixed load: heartbeats")
    changes = _fact(results, "mixed load: status changes")
    work = costs.idle + lookups * (costs.lookup_s + 100 * costs.listed_s)
    work += heartbeats * costs.heartbeat_s + changes * (costs.change_s + costs.commit_s)
    cores = busy_share(costs, work, lookups + heartbeats / 50 + changes)
    written = heartbeats * costs.etcd_heartbeat_bytes + changes * costs.etcd_change_bytes
    return [
        ("mixed load, processor", 100 * cores, _fact(results, "mixed load: replica's processor"), "% of a core"),
        ("mixed load, etcd bytes", written, _fact(results, "mixed load: etcd value and key bytes"), "B/s"),
    ]


def _commit_s(results: Results, costs: MeasuredCosts) -> float:
    """From changes that come one by one, with one watcher."""
    share, rate = _fact(results, "1 watchers: replica's processor") / 100, _fact(results, "1 watchers: changes")
    return max(0.0, (share - costs.idle) / rate - costs.change_s - costs.event_s)


def _wake_s(results: Results, costs: MeasuredCosts) -> float:
    """The processor time of a call that wakes a replica: host agents' calls, less the cost of their heartbeats."""
    share = _of_host_agent(results, "replica's processor") / 100
    calls = _of_host_agent(results, "calls that carried them")
    heartbeats = _of_host_agent(results, "heartbeats acknowledged")
    work = _of_host_agent(results, "replica's processor, watches alone") / 100 + heartbeats * costs.heartbeat_s
    return max(0.0, (share - work) / (calls * (1 - share)))


def _secured_s(results: Results, case: str) -> float:
    """What TLS and tokens add to a call."""
    found = results.comparison(f"{case}, TLS and tokens", "transport")
    if found is None:
        raise LookupError("the case transport is needed")
    return max(0.0, (found.of("cpu_us").median - found.of("cpu_us", "plain").median) * _MICRO)


def _followed_share(results: Results) -> float:
    found = results.comparison("Find 102 of three installations, gRPC")
    if found is None:
        raise LookupError("the case federated is needed")
    return min(1.0, found.ratio("single").median)


def _cpu_s(results: Results, case: str) -> float:
    found = results.comparison(case)
    assert found is not None
    return found.of("cpu_us").median * _MICRO


def _origin(results: Results) -> str:
    """The last run; its parts may be older, as docs/measurements.md says."""
    header = results.header
    return f"until {header['date'][:10]} at {header['commit']}, {header['machine']}"


def _sizes(results: Results) -> list[int]:
    """Sizes at which a start was measured."""
    sizes = sorted(int(f.size) for f in results.facts if f.name.startswith("ready to serve"))
    if len(sizes) < 2:
        raise LookupError("the case sizes is needed, with more than one size")
    return sizes


def _fact(results: Results, name: str) -> float:
    fact = results.fact(name)
    if fact is None:
        raise LookupError(f"`{name}` was not measured")
    return fact.spread().median


def _host_agents(results: Results) -> int:
    """The most that were measured."""
    counts = [int(m[1].replace(",", "")) for f in results.facts if (m := _HOST_AGENTS.match(f.name))]
    if not counts:
        raise LookupError("the case hostagents is needed")
    return max(counts)


def _of_host_agent(results: Results, what: str) -> float:
    return _fact(results, f"{_host_agents(results):,} host agents with 20 instances each: {what}")
