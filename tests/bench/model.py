"""The scale model: what an installation of a size and load takes, from measured coefficients.

    python -m tests.bench model --instances 1000000 --services 10000 --lookups 2000 --replicas 5

Linear on purpose: each term is one measured cost times one rate, so that everybody can check it with a pencil. What it
leaves out: queueing (plan for 70 % of a core), TLS, and reads that decode (field masks).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.bench.results import Results
from tests.bench.stats import line

_HOST_AGENTS = re.compile(r"([\d,]+) host agents with ")
_FENCES_PER_S = 1 / 3  # a replica that nobody asks puts one every 3 s
_FLUSHES_PER_S = 5.0  # batches of heartbeats per replica at most
_HISTORY_S = 600.0  # etcd keeps up to two spans between compactions
_MOST_CONNECTIONS = 50_000  # with a watch each: the goal of our transport
_PLAN = 0.7  # of a core: beyond that, waiting takes over


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Measured costs. Times in seconds of one core, sizes in bytes."""

    lookup_s: float  # one FindInstances over gRPC
    listed_s: float  # and for each instance in its answer
    heartbeat_s: float  # one heartbeat, in batches of 50, at the replica that is sent it
    heard_s: float  # at every other one
    change_s: float  # one status change, at the replica that is sent it
    followed_s: float  # at every other one
    event_s: float  # one event to one watcher
    idle: float  # of a core, without load
    base_bytes: float
    instance_bytes: float  # in a replica's memory, encoded bytes included
    start_s: float
    start_each_s: float
    frame_bytes: float
    etcd_heartbeat_bytes: float  # keys and values written
    etcd_change_bytes: float
    etcd_each_bytes: float  # in etcd's database
    changes_per_transaction: float
    watch: float  # of a core: one connection with a watch that tells nothing but bookmarks
    watch_bytes: float


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of an installation. Rates are of all replicas together, per second."""

    instances: int = 1_000_000
    services: int = 10_000
    lookups: float = 1_000.0  # each of one service
    watchers: int = 1_000  # each of one service
    changes: float = 20.0  # status changes
    report_interval_s: float = 180.0  # every instance heartbeats so often
    per_node: int = 20  # instances behind one host agent, with one connection and one watch; 1: there are none
    replicas: int = 3
    locations: int = 1  # alike; a gateway asks all of them

    @property
    def heartbeats(self) -> float:
        return self.instances / self.report_interval_s

    @property
    def per_service(self) -> float:
        return self.instances / max(1, self.services)


@dataclass(frozen=True, slots=True)
class Need:
    """What one location needs."""

    cores_per_replica: float
    memory_bytes_per_replica: float
    start_s: float
    network_bytes_per_s_per_replica: float
    etcd_transactions_per_s: float
    etcd_bytes_per_s: float
    etcd_database_bytes: float
    connections_per_replica: float  # each with a watch

    def wall(self) -> str:
        """What gives out first."""
        shares = {
            "one core per replica": self.cores_per_replica / _PLAN,
            "64 GiB of memory per replica": self.memory_bytes_per_replica / (64 << 30),
            "8 GiB of etcd's database": self.etcd_database_bytes / (8 << 30),
            "ten minutes to start a replica": self.start_s / 600,
            f"{_MOST_CONNECTIONS:,} connections per replica": self.connections_per_replica / _MOST_CONNECTIONS,
            "1 Gbit/s per replica": self.network_bytes_per_s_per_replica / 125e6,
        }
        worst = max(shares, key=lambda name: shares[name])
        return f"{worst} ({shares[worst]:.0%} used)"


def coefficients(results: Results) -> Coefficients:
    """From a run. Fitted to the lookups of all sizes and to the starts with the fewest and the most instances.

    Raises:
        LookupError: a case that is needed was not measured.
    """
    found = {c.size: c.of("cpu_us").median / 1e6 for c in results.comparisons if c.size and c.name.endswith(", gRPC")}
    lookup_s, listed_s = line(found)
    fifty = results.comparison("Heartbeats by 50, gRPC")
    change = results.comparison("Status changes, 64 agents, gRPC")
    if fifty is None or change is None:
        raise LookupError("the cases heartbeats and changes are needed")
    small, large = sizes(results)
    start_s, start_each_s = line({n: _fact(results, f"ready to serve, {n:,}") for n in (small, large)})
    idle = _fact(results, "idle replica") / 100
    each = _fact(results, f"encoded bytes each, {large:,}") + _fact(results, f"memory each beyond these, {large:,}")
    return Coefficients(
        lookup_s=lookup_s,
        listed_s=listed_s,
        heartbeat_s=fifty.of("cpu_us").median / 50 / 1e6,
        heard_s=_fact(results, "CPU per heartbeat at another replica") / 1e6,
        change_s=change.of("cpu_us").median / 1e6,
        followed_s=_fact(results, "CPU per change at another replica") / 1e6,
        event_s=_fact(results, "1,000 watchers: CPU per event delivered") / 1e6,
        idle=idle,
        base_bytes=_fact(results, "memory of a replica without instances") * 1e6,
        instance_bytes=each,
        start_s=start_s,
        start_each_s=start_each_s,
        frame_bytes=_fact(results, f"encoded bytes each, {large:,}"),
        etcd_heartbeat_bytes=_fact(results, "etcd value and key bytes per heartbeat, at 1,000 heartbeats/s"),
        etcd_change_bytes=_fact(results, "etcd value and key bytes per status change"),
        etcd_each_bytes=_fact(results, f"etcd on disk each, {large:,}"),
        changes_per_transaction=_fact(results, "status changes per etcd transaction"),
        watch=(_of_host_agent(results, "replica's processor, watches alone") / 100 - idle) / _host_agents(results),
        watch_bytes=_of_host_agent(results, "memory of the replica for each connection and watch") * 1024,
    )


def need(c: Coefficients, load: Load) -> Need:
    """What each location needs for its part of the load."""
    n = max(1, load.replicas)
    instances = load.instances / load.locations
    heartbeats, changes = load.heartbeats / load.locations, load.changes / load.locations
    events = changes * load.watchers / max(1, load.services)  # every watcher of the service that changes
    listed = load.per_service / load.locations
    connections = (instances / load.per_node + load.watchers / load.locations) / n
    cores = (
        c.idle
        + connections * c.watch
        + load.lookups / n * (c.lookup_s + c.listed_s * listed)
        + heartbeats * (c.heartbeat_s / n + c.heard_s * (n - 1) / n)
        + changes * (c.change_s / n + c.followed_s * (n - 1) / n)
        + events / n * c.event_s
    )
    groups = min(changes, changes / c.changes_per_transaction * n) if changes > 50 else changes
    written = heartbeats * c.etcd_heartbeat_bytes + changes * c.etcd_change_bytes
    sent = load.lookups / n * listed * c.frame_bytes + events / n * c.frame_bytes
    return Need(
        cores_per_replica=cores,
        memory_bytes_per_replica=c.base_bytes + instances * c.instance_bytes + connections * c.watch_bytes,
        start_s=c.start_s + instances * c.start_each_s,
        network_bytes_per_s_per_replica=sent + written,
        etcd_transactions_per_s=min(heartbeats, _FLUSHES_PER_S * n) + groups + _FENCES_PER_S * n,
        etcd_bytes_per_s=written,
        etcd_database_bytes=instances * c.etcd_each_bytes + written * _HISTORY_S,
        connections_per_replica=connections,
    )


def checks(results: Results, c: Coefficients) -> list[tuple[str, float, float, str]]:
    """(what, predicted, measured, unit) at points that nothing was fitted to."""
    told: list[tuple[str, float, float, str]] = []
    for size in held_out(results):
        predicted = need(c, Load(instances=size, replicas=1, watchers=0, per_node=size))
        measured = _fact(results, f"encoded bytes each, {size:,}") + _fact(
            results, f"memory each beyond these, {size:,}"
        )
        memory = c.base_bytes + size * measured
        told.append(
            (f"memory of a replica, {size:,} instances", predicted.memory_bytes_per_replica / 1e6, memory / 1e6, "MB")
        )
        told.append((f"ready to serve, {size:,}", predicted.start_s, _fact(results, f"ready to serve, {size:,}"), "s"))
    lookups, heartbeats = _fact(results, "mixed load: lookups"), _fact(results, "mixed load: heartbeats")
    changes = _fact(results, "mixed load: status changes")
    cores = c.idle + lookups * (c.lookup_s + 100 * c.listed_s) + heartbeats * c.heartbeat_s + changes * c.change_s
    told.append(
        ("mixed load, processor", 100 * cores, _fact(results, "mixed load: replica's processor"), "% of a core")
    )
    written = heartbeats * c.etcd_heartbeat_bytes + changes * c.etcd_change_bytes
    told.append(("mixed load, etcd bytes", written, _fact(results, "mixed load: etcd value and key bytes"), "B/s"))
    return told


def sizes(results: Results) -> tuple[int, int]:
    """The fewest and the most instances that a start was measured with."""
    measured = _started(results)
    if len(measured) < 2:
        raise LookupError("the case sizes is needed, with more than one size")
    return measured[0], measured[-1]


def held_out(results: Results) -> list[int]:
    """The sizes between."""
    return _started(results)[1:-1]


def _started(results: Results) -> list[int]:
    return sorted(int(f.size) for f in results.facts if f.name.startswith("ready to serve"))


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
