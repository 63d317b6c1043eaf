"""What is wrong with an installation, since when, why, and what to do next. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from clients.hqctl.output.facts import Facts, Finding
from clients.hqctl.output.guard_words import verdict
from clients.hqctl.words import ago, clock_time, plural, seconds_of, size, span
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

SILENT_PEER_S = 30.0
FORGOTTEN_PEER_S = 600.0
MANY = 0.2  # of all instances; the share at which the guard holds, too, unless told otherwise
WORST = 3  # services that are named
FILLING = 0.8  # of a limit


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
    yield from _space(facts)
    broken = [member for member in facts.members if member.error]
    silent = sum(not member.version for member in broken)
    for member in broken:
        yield Finding(
            f"etcd member {member.endpoint}: {member.error}.",
            "It answers, and says so of itself: look at its log and at `etcdctl alarm list`."
            if member.version
            else _majority(silent, len(facts.members)),
        )
    if len(broken) * 2 < len(facts.members) and not any(member.leader for member in facts.members):
        yield Finding(
            "no etcd member leads: nothing can be written.",
            "An election takes seconds. If it lasts, a majority of members is away: bring them back.",
        )


def _space(facts: Facts) -> Iterator[Finding]:
    largest = max(facts.members, key=lambda member: member.db_size_bytes, default=admin_pb2.StoreMember())
    quota, used = largest.quota_bytes, largest.db_size_bytes
    sizes = f"{size(used)}, {size(largest.db_size_in_use_bytes)} of that in use" + (
        f", quota {size(quota)}" * bool(quota)
    )
    if any(member.full for member in facts.members):
        yield Finding(
            f"etcd is full ({sizes}): nothing can be written, and nobody is flipped. Reads go on.",
            "If most is in use: raise --quota-backend-bytes of each member and restart it, one by one, or remove data. "
            "Then `etcdctl compact REVISION`, `etcdctl defrag` for each member, `etcdctl alarm disarm`.",
        )
    elif quota and used > FILLING * quota:
        yield Finding(
            f"etcd is filling ({sizes}).",
            "Raise --quota-backend-bytes of each member in time; `etcdctl defrag` gives back what is not in use.",
        )
    if facts.max_store_bytes and facts.store_bytes > FILLING * facts.max_store_bytes:
        yield Finding(
            f"instances take {size(facts.store_bytes)} of the {size(facts.max_store_bytes)} that HQ lets them take; at "
            "that, what adds more is refused.",
            "Delete what is not needed, or raise etcd's --quota-backend-bytes, then --max-store-bytes of each replica.",
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
        since = f" since {clock_time(guard.since)} ({ago(guard.since.seconds, now_s)})" if guard.since.seconds else ""
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
            f"the newest {ago(newest, now_s)}.",
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
    yield from _not_ready(facts)


def _not_ready(facts: Facts) -> Iterator[Finding]:
    """A problem where they are many: some are always about to start or to end."""
    lacking = facts.total - facts.ready
    if not lacking:
        return
    unknown = sum(group.unknown for group in facts.counts)
    told = f" ({unknown} of them never reported)" if unknown else ""
    worst = sorted((g for g in facts.counts if g.total > g.ready), key=lambda g: (g.ready - g.total, g.key))
    named = ", ".join(f"{g.key or 'without a service'} {g.total - g.ready} of {g.total}" for g in worst[:WORST])
    more = f", and {plural(len(worst) - WORST, 'more service')}" if len(worst) > WORST else ""
    yield Finding(
        f"{lacking} of {plural(facts.total, 'instance')} not ready{told}: {named}{more}.",
        "`hqctl find --not-ready` lists them with the reason, `hqctl count --by node` shows where they are.",
        severe=lacking > MANY * facts.total,
    )


def _planned(facts: Facts, now_s: float) -> Iterator[Finding]:
    for one in facts.suspensions:
        until = f"until {clock_time(one.until)} ({span(one.until.seconds - now_s)} left)"
        yield Finding(
            f"planned work on {one.node_name} {until}, by {one.by}: {one.reason}.",
            f"Nothing there is called silent meanwhile. `hqctl resume {one.node_name}` ends it.",
            severe=False,
        )
