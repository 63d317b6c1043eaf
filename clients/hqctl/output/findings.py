"""What is wrong with an installation, since when, why, and what to do next. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from clients.hqctl.output.guard_words import verdict
from clients.hqctl.words import clock_time, plural, seconds_of, span
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

SILENT_PEER_S = 30.0
FORGOTTEN_PEER_S = 600.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing an operator should know.

    Attributes:
        what: what is wrong, since when and why, in a sentence.
        next: what to do about it.
        severe: it needs somebody; otherwise it explains something.
    """

    what: str
    next: str
    severe: bool = True


@dataclass(frozen=True, slots=True)
class Reached:
    """One address that was asked: what it answered, or why it did not."""

    address: str
    sources: tuple[pb.Source, ...] = ()
    error: str = ""


@dataclass(slots=True)
class Facts:
    """What could be found out; what could not is empty.

    Attributes:
        refused: why AdminService did not answer: a front has none.
    """

    reached: list[Reached] = field(default_factory=list)
    total: int = 0
    ready: int = 0
    replicas: Sequence[admin_pb2.ReplicaInfo] = ()
    members: Sequence[admin_pb2.StoreMember] = ()
    guard: pb.GuardState | None = None
    records: Sequence[admin_pb2.QuarantinedRecord] = ()
    suspensions: Sequence[admin_pb2.Suspension] = ()
    flips: Sequence[admin_pb2.Transition] = ()
    refused: str = ""

    def sources(self) -> list[pb.Source]:
        """What each replica (or location) said of itself."""
        return [source for one in self.reached for source in one.sources]


def findings(facts: Facts, now_s: float) -> list[Finding]:
    """The severe ones first."""
    found = [
        *_servers(facts),
        *_sources(facts),
        *_doubts(facts),
        *_store(facts),
        *_guard(facts, now_s),
        *_records(facts),
        *_instances(facts, now_s),
        *_planned(facts, now_s),
    ]
    return sorted(found, key=lambda one: not one.severe)


def _servers(facts: Facts) -> Iterator[Finding]:
    others = "The others serve meanwhile" if any(r.sources for r in facts.reached) else "Nobody serves"
    for one in facts.reached:
        if one.error:
            yield Finding(
                f"{one.address} does not answer: {one.error.removeprefix(one.address).lstrip(' :')}.",
                f"{others}. Is its process running (`systemctl status hq`), and is the address right?",
            )
    for peer in facts.replicas:
        silent_s = seconds_of(peer.silent_for)
        if not peer.self and SILENT_PEER_S < silent_s < FORGOTTEN_PEER_S:
            yield Finding(
                f"replica {peer.replica} gave no sign of life for {span(silent_s)}: it stopped or lost its store.",
                "Nothing to do if it was restarted (each process has a name of its own); else look at its log.",
                severe=False,
            )
    if len({source.epoch for source in facts.sources() if source.epoch and not facts.refused}) > 1:
        yield Finding(
            "replicas answer from different epochs: the store was restored or replaced.",
            "Replicas that lag behind follow by themselves; if not, do they all name the same etcd and prefix?",
        )


def _sources(facts: Facts) -> Iterator[Finding]:
    for source in facts.sources():
        name = source.cluster if facts.refused else f"replica {source.replica}"
        late_s = seconds_of(source.staleness)
        since = f" for {span(late_s)}" if late_s >= 1 else ""
        if source.error and not source.replica:
            yield Finding(
                f"{name} did not answer the front: {source.error}. Its instances are missing in every answer.",
                f"Ask a replica of {name} itself: `hqctl status --server HOST:PORT`.",
            )
        elif source.stale:
            why = f": {source.error}" if source.error else ""
            yield Finding(
                f"{name} is stale{since}{why}.",
                "Reads go on from memory, writes fail, nothing flips. Look at etcd, and the network to it from there.",
            )


def _doubts(facts: Facts) -> Iterator[Finding]:
    doubts = {s.cluster: s.error for s in facts.sources() if s.trust == pb.EPOCH_TRUST_DOUBTED}
    for cluster, doubt in doubts.items():
        yield Finding(
            f"{cluster} may have lost its instances: {doubt}. Discovery keeps what it had.",
            "Is it the right etcd (`hqctl epoch status`)? Then restore a backup (`hq restore`), or if this is all: "
            "`hqctl epoch confirm --reason …`.",
        )


def _store(facts: Facts) -> Iterator[Finding]:
    broken = [member for member in facts.members if member.error]
    for member in broken:
        yield Finding(
            f"etcd member {member.endpoint}: {member.error}.",
            _majority(len(broken), len(facts.members)),
        )
    if len(broken) * 2 < len(facts.members) and not any(member.leader for member in facts.members):
        yield Finding(
            "no etcd member leads: nothing can be written.",
            "An election takes seconds. If it lasts, a majority of members is away: bring them back.",
        )


def _majority(broken: int, count: int) -> str:
    left = count - broken - (count // 2 + 1)
    if left < 0:
        return "The majority is lost: HQ cannot write until members are back."
    spare = "one more loss stops all writes" if left == 0 else f"{plural(left, 'more loss')} can be borne"
    return f"Writes go on, {spare}. Look at etcd's log there; `etcdctl endpoint status` says more."


def _guard(facts: Facts, now_s: float) -> Iterator[Finding]:
    guard = facts.guard
    if guard is None:
        return
    if guard.override.kind:
        word = "released" if guard.override.kind == pb.GUARD_OVERRIDE_KIND_RELEASE else "forced to hold all flips"
        by = f"by {guard.override.by}: {guard.override.reason}"
        yield Finding(
            f"the guard was {word} at {clock_time(guard.override.since)} {by}.",
            f"It ends at {clock_time(guard.override.until)}, in {span(guard.override.until.seconds - now_s)}."
            + (f" {plural(guard.waiting, 'flip')} waiting." if guard.waiting else ""),
            severe=False,
        )
    elif guard.holding:
        since = f" since {clock_time(guard.since)} ({span(now_s - guard.since.seconds)})" if guard.since.seconds else ""
        flips = plural(guard.waiting, "flip") if guard.waiting else "flips"
        yield Finding(
            f"the guard holds {flips} back{since}: {verdict(guard)}.",
            "Many agents at once: is it the network, or HQ? If they are truly gone: `hqctl guard release --reason …`; "
            f"else it ends by itself{_at_the_latest(guard, now_s)}.",
        )


def _at_the_latest(guard: pb.GuardState, now_s: float) -> str:
    return f" in {span(guard.until.seconds - now_s)} at the latest" if guard.until.seconds else ""


def _records(facts: Facts) -> Iterator[Finding]:
    if facts.records:
        keys = ", ".join(record.key for record in facts.records[:3]) + (", …" if len(facts.records) > 3 else "")
        yield Finding(
            f"{plural(len(facts.records), 'record')} cannot be decoded: {keys}.",
            "`hqctl quarantine` shows them. Applying an instance that is shown clears its record, deleting any.",
        )


def _instances(facts: Facts, now_s: float) -> Iterator[Finding]:
    if facts.flips:
        newest = max(flip.time.seconds for flip in facts.flips)
        nodes = {flip.node_name for flip in facts.flips}
        yield Finding(
            f"{plural(len(facts.flips), 'flip')} for silence in the last hour, on {plural(len(nodes), 'node')}, "
            f"the newest {span(now_s - newest)} ago.",
            "`hqctl events` shows them, `hqctl why INSTANCE` tells one's story.",
            severe=False,
        )
    silent = facts.guard.silent if facts.guard is not None and not facts.guard.holding else 0
    if silent:
        yield Finding(
            f"{silent} of {plural(facts.guard.expected if facts.guard else 0, 'revision')} silent for over two report "
            "intervals, or flipped lately.",
            "Is a node or its network away? `hqctl find --not-ready --sort-by heartbeat` shows who was heard when.",
            severe=False,
        )
    if facts.total > facts.ready:
        yield Finding(
            f"{facts.total - facts.ready} of {plural(facts.total, 'instance')} not ready.",
            "`hqctl find --not-ready` lists them with the reason.",
            severe=False,
        )


def _planned(facts: Facts, now_s: float) -> Iterator[Finding]:
    for one in facts.suspensions:
        until = f"until {clock_time(one.until)} ({span(one.until.seconds - now_s)} left)"
        yield Finding(
            f"planned work on {one.node_name} {until}, by {one.by}: {one.reason}.",
            f"Nothing there is called silent meanwhile. `hqctl resume {one.node_name}` ends it.",
            severe=False,
        )
