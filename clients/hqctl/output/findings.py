"""The facts of hqctl status: what is wrong, since when, why, and what to do next. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hqcli.readable import ago, clock_time, mended_words, plural, seconds_of, size, span, verdict
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing an operator should know.

    Attributes:
        what: what is wrong, since when and why, in a sentence.
        next: what to do about it.
        severe: somebody has to act; otherwise it only explains something.
    """

    what: str
    next: str
    severe: bool = True


@dataclass(frozen=True, slots=True)
class Reached:
    """One queried address: what it answered, or why it did not."""

    address: str
    sources: tuple[pb.Source, ...] = ()
    error: str = ""


@dataclass(slots=True)
class Facts:
    """Facts that could be found out; the rest is empty.

    Attributes:
        counts: by service.
        proofs: what each replica says of the check of its memory, by its address.
        refused: why AdminService did not answer: a gateway has none.
    """

    reached: list[Reached] = field(default_factory=list)
    counts: Sequence[pb.InstanceCount] = ()
    replicas: Sequence[admin_pb2.ReplicaInfo] = ()
    members: Sequence[admin_pb2.StoreMember] = ()
    store_bytes: int = 0
    max_store_bytes: int = 0
    proofs: Mapping[str, admin_pb2.MemoryProof] = field(default_factory=dict)
    guard: pb.GuardState | None = None
    records: Sequence[admin_pb2.QuarantinedRecord] = ()
    suspensions: Sequence[admin_pb2.Suspension] = ()
    expiries: Sequence[admin_pb2.Transition] = ()
    refused: str = ""

    @property
    def total(self) -> int:
        """Instances."""
        return sum(group.total for group in self.counts)

    @property
    def ready(self) -> int:
        """Instances that are ready."""
        return sum(group.ready for group in self.counts)

    def sources(self) -> list[pb.Source]:
        """Return each replica's (or location's) report about itself."""
        return [source for one in self.reached for source in one.sources]


SILENT_PEER_S = 30.0
FORGOTTEN_PEER_S = 600.0
MANY = 0.2  # of all instances; also the guard's default threshold
WORST = 3  # services that are named
FILLING = 0.8  # of a limit


def findings(facts: Facts, now_s: float) -> list[Finding]:
    """All findings, the severe ones first."""
    found = [
        *_servers(facts),
        *_sources(facts),
        *_doubts(facts),
        *_store(facts),
        *_guard(facts, now_s),
        *_records(facts),
        *_instances(facts, now_s),
        *_planned_work(facts, now_s),
    ]
    return sorted(found, key=lambda one: not one.severe)


_NO_HQ = ("there is no method", "unknown service")


def _servers(facts: Facts) -> Iterator[Finding]:
    others = "The others keep serving" if any(r.sources for r in facts.reached) else "Reads and writes fail"
    for one in facts.reached:
        if any(words in one.error for words in _NO_HQ):
            yield Finding(
                f"{one.address} responds, but does not serve this call: {_without_address(one)}.",
                "Is it the gRPC address of an HQ (usually port 7071)? Port 7072 is for agents only.",
            )
        elif one.error:
            yield Finding(
                f"{one.address} does not respond: {_without_address(one)}.",
                f"{others}. Check its process (`systemctl status hq`) and the address.",
            )
    for peer in facts.replicas:
        silent_s = seconds_of(peer.silent_for)
        if not peer.self and SILENT_PEER_S < silent_s < FORGOTTEN_PEER_S:
            yield Finding(
                f"replica {peer.replica} has been silent for {span(silent_s)}: it stopped or lost its store.",
                "If it was restarted, nothing to do (each process has a new name); else check its log.",
                severe=False,
            )
    if len({source.epoch for source in facts.sources() if source.epoch and not facts.refused}) > 1:
        yield Finding(
            "replicas serve different epochs: the store was restored or replaced.",
            "Lagging replicas catch up by themselves; if not, check that all use the same --etcd and --prefix.",
        )


def _without_address(one: Reached) -> str:
    """Why a server does not respond, without the address: the sentence has named it already."""
    return one.error.removeprefix(one.address).replace(f" to {one.address} ", " ").lstrip(" :")


def _sources(facts: Facts) -> Iterator[Finding]:
    for source in facts.sources():
        name = source.cluster if facts.refused else f"replica {source.replica}"
        late_s = seconds_of(source.staleness)
        since = f" for {span(late_s)}" if late_s >= 1 else ""
        if source.error and not source.replica:
            yield Finding(
                f"{name} did not respond to the gateway: {source.error}. Responses lack its instances.",
                "Ask one of its replicas: `hqctl status --server HOST:PORT`.",
            )
        elif source.stale:
            why = f": {source.error}" if source.error else ""
            yield Finding(
                f"{name} is stale{since}{why}.",
                "Reads continue from memory, writes fail, nothing expires. Check etcd and its network from there.",
            )


def _doubts(facts: Facts) -> Iterator[Finding]:
    doubts = {s.cluster: s.error for s in facts.sources() if s.trust == pb.EPOCH_TRUST_DOUBTED}
    for cluster, doubt in doubts.items():
        yield Finding(
            f"{cluster} may have lost its instances: {doubt}. Discovery keeps its last addresses.",
            "Is it the right etcd (`hqctl epoch status`)? Then restore a backup (`hq restore`), or if this is all: "
            "`hqctl epoch confirm --reason …`.",
        )


def _store(facts: Facts) -> Iterator[Finding]:
    yield from _space(facts)
    broken = [member for member in facts.members if member.error]
    silent = sum(not member.version for member in broken)
    for member in broken:
        yield Finding(
            f"etcd member {member.endpoint}: {member.error}.",
            "It responds and reports this itself: check its log and `etcdctl alarm list`."
            if member.version
            else _majority(silent, len(facts.members)),
        )
    for words in dict.fromkeys(member.advice for member in facts.members if member.advice):
        yield Finding(f"{words}.", "One member at a time; see docs/operations.md.", severe=False)
    for member in facts.members:
        if member.learner:
            yield Finding(
                f"etcd member {member.endpoint} is a learner, which does not serve requests.",
                "Promote it (`etcdctl member promote`), or take it out of --etcd.",
                severe=False,
            )
    yield from _memory(facts.proofs)
    if len(broken) * 2 < len(facts.members) and not any(member.leader for member in facts.members):
        yield Finding(
            "no etcd member that this replica reaches is the leader.",
            "Nothing can be written, unless the leader is a member that it cannot reach or that --etcd does not name. "
            "An election takes seconds; if it lasts, check the network between the members (peer port, usually 2380) "
            "and their logs.",
        )


def _memory(proofs: Mapping[str, admin_pb2.MemoryProof]) -> Iterator[Finding]:
    for address, proof in proofs.items():
        if proof.mended:
            yield Finding(
                f"{mended_words(proof.mended, f'the replica at {address}', 'etcd')}.",
                "Report it, with the version of etcd: no change should ever be lost.",
                severe=False,
            )
    noticed = [seconds_of(p.foreign_compaction_ago) for p in proofs.values() if p.HasField("foreign_compaction_ago")]
    if noticed:
        yield Finding(
            f"somebody other than HQ compacts etcd's history (noticed {span(min(noticed))} ago).",
            "Switch etcd's --auto-compaction-retention off, or the job that runs `etcdctl compact`: HQ does it itself.",
            severe=False,
        )


def _space(facts: Facts) -> Iterator[Finding]:
    largest = max(facts.members, key=lambda member: member.db_size_bytes, default=admin_pb2.StoreMember())
    quota, used = largest.quota_bytes, largest.db_size_bytes
    sizes = f"{size(used)}, {size(largest.db_size_in_use_bytes)} of that in use" + (
        f", quota {size(quota)}" * bool(quota)
    )
    if any(member.full for member in facts.members):
        yield Finding(
            f"etcd is full ({sizes}): nothing can be written and nothing expires. Reads continue.",
            "If most is in use: raise --quota-backend-bytes of each member and restart it, one by one, or remove data. "
            "Then `etcdctl compact REVISION`, `etcdctl defrag` for each member, `etcdctl alarm disarm`.",
        )
    elif quota and used > FILLING * quota:
        yield Finding(
            f"etcd is filling ({sizes}).",
            "Raise --quota-backend-bytes of each member in time; `etcdctl defrag` frees what is not in use.",
        )
    if facts.max_store_bytes and facts.store_bytes > FILLING * facts.max_store_bytes:
        yield Finding(
            f"instances take {size(facts.store_bytes)} of the {size(facts.max_store_bytes)} that HQ allows; at the "
            "limit, writes that add data are refused.",
            "Delete what is not needed, or raise etcd's --quota-backend-bytes, then --max-store-bytes of each replica.",
        )


def _majority(broken: int, count: int) -> str:
    left = count - broken - (count // 2 + 1)
    if left < 0:
        return "This replica reaches no majority. Unless the members reach each other, nothing can be written."
    spare = "one more loss stops all writes" if left == 0 else f"{plural(left, 'more loss')} can be tolerated"
    return f"Writes go on, {spare}. Look at etcd's log there; `etcdctl endpoint status` says more."


def _guard(facts: Facts, now_s: float) -> Iterator[Finding]:
    guard = facts.guard
    if guard is None:
        return
    if guard.override.kind:
        word = "released" if guard.override.kind == pb.GUARD_OVERRIDE_KIND_RELEASE else "forced to hold all expiries"
        by = f"by {guard.override.by}: {guard.override.reason}"
        yield Finding(
            f"the guard was {word} at {clock_time(guard.override.since)} {by}.",
            f"The order ends at {clock_time(guard.override.until)}, in {span(guard.override.until.seconds - now_s)}."
            + (f" {plural(guard.waiting, 'expiry')} waiting." if guard.waiting else ""),
            severe=False,
        )
    elif guard.holding:
        since = f" since {clock_time(guard.since)} ({ago(guard.since.seconds, now_s)})" if guard.since.seconds else ""
        expiries = plural(guard.waiting, "expiry") if guard.waiting else "expiries"
        yield Finding(
            f"the guard holds {expiries}{since}: {verdict(guard)}.",
            "Many agents at once: check the network and HQ. If they are really gone: `hqctl guard release --reason "
            f"…`; else it ends by itself{_at_the_latest(guard, now_s)}.",
        )


def _at_the_latest(guard: pb.GuardState, now_s: float) -> str:
    return f" in {span(guard.until.seconds - now_s)} at the latest" if guard.until.seconds else ""


def _records(facts: Facts) -> Iterator[Finding]:
    if facts.records:
        keys = ", ".join(record.key for record in facts.records[:3]) + (", …" if len(facts.records) > 3 else "")
        yield Finding(
            f"{plural(len(facts.records), 'record')} cannot be decoded: {keys}.",
            "`hqctl quarantine` shows them. Applying or deleting an instance replaces its record; one of secrets goes "
            "only with its instance: delete that, and create it again.",
        )


def _instances(facts: Facts, now_s: float) -> Iterator[Finding]:
    if facts.expiries:
        newest = max(expiry.time.seconds for expiry in facts.expiries)
        nodes = {expiry.node_name for expiry in facts.expiries}
        yield Finding(
            f"{plural(len(facts.expiries), 'expiry')} in the last hour, on {plural(len(nodes), 'node')}, "
            f"the newest {ago(newest, now_s)}.",
            "`hqctl events` shows them, `hqctl why INSTANCE` explains one.",
            severe=False,
        )
    silent = facts.guard.silent if facts.guard is not None and not facts.guard.holding else 0
    if silent:
        yield Finding(
            f"{silent} of {plural(facts.guard.expected if facts.guard else 0, 'revision')} silent for over two report "
            "intervals, or expired recently.",
            "Is a node or its network down? `hqctl find --not-ready --sort-by heartbeat` shows the last reports.",
            severe=False,
        )
    yield from _not_ready(facts)


def _not_ready(facts: Facts) -> Iterator[Finding]:
    """A problem only if there are many: some are always starting or stopping. Those stopped on purpose do not count."""
    lacking = sum(map(_lacking, facts.counts))
    if not lacking:
        return
    unknown = sum(group.unknown for group in facts.counts)
    told = f" ({unknown} of them never reported)" if unknown else ""
    worst = sorted((g for g in facts.counts if _lacking(g)), key=lambda g: (-_lacking(g), g.key))
    named = ", ".join(f"{g.key or 'without a service'} {_lacking(g)} of {g.total}" for g in worst[:WORST])
    more = f", and {plural(len(worst) - WORST, 'more service')}" if len(worst) > WORST else ""
    yield Finding(
        f"{lacking} of {plural(facts.total, 'instance')} not ready{told}: {named}{more}.",
        "`hqctl find --not-ready` lists them with the reason, `hqctl count --by node` shows where they are.",
        severe=lacking > MANY * facts.total,
    )


def _lacking(group: pb.InstanceCount) -> int:
    """Instances that should be ready and are not."""
    return group.total - group.ready - group.not_wanted


def _planned_work(facts: Facts, now_s: float) -> Iterator[Finding]:
    for one in facts.suspensions:
        until = f"until {clock_time(one.until)} ({span(one.until.seconds - now_s)} left)"
        yield Finding(
            f"planned work on {one.node_name} {until}, by {one.by}: {one.reason}.",
            f"Nothing on it expires meanwhile. `hqctl resume {one.node_name}` ends it.",
            severe=False,
        )
