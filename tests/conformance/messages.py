"""The messages of a watch, made from the words of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.conformance.scenarios import ScenarioStep

CLUSTER: Final = "c"
EPOCH: Final = "e1"
_KINDS: Final = {
    "snapshot": pb.WATCH_KIND_SNAPSHOT,
    "synced": pb.WATCH_KIND_SYNCED,
    "events": pb.WATCH_KIND_EVENTS,
    "bookmark": pb.WATCH_KIND_BOOKMARK,
    "resync": pb.WATCH_KIND_RESYNC,
}
_TRUST: Final = {"doubted": pb.EPOCH_TRUST_DOUBTED, "confirmed": pb.EPOCH_TRUST_CONFIRMED}


def build_message(step: ScenarioStep, replica: str) -> pb.WatchInstancesResponse:
    """What a replica of that name sends for a step.

    `snapshot` and `events` list instances (`-web-1` is deleted, `~web-1` leaves the filter), `synced` and `bookmark`
    name the resume token, `resync` the reason. Options: `token`, `cluster`, `epoch`, `trust`, `stale`, `staleness_s`,
    `away` (clusters that a gateway cannot reach), `members` (clusters that it names), `collapsed`, and an instance's.
    """
    if step.verb == "unknown_kind":
        return pb.WatchInstancesResponse.FromString(b"\x08\x63")  # kind 99, of an API to come
    options, what = step.options, step.what
    message = pb.WatchInstancesResponse(kind=_KINDS[step.verb], collapsed=bool(options.get("collapsed")))
    message.resume_token = str(options.get("token", ""))
    if step.verb in ("snapshot", "events"):
        for word in expand(what):
            message.events.append(build_event(word, options))
    elif step.verb == "resync":
        message.reason = str(what or "")
    elif what:
        message.resume_token = str(what)
    message.sources.extend(_sources(step, replica))
    return message


def expand(words: str | None) -> list[str]:
    """The words of a list; `web-1..500` stands for so many."""
    listed: list[str] = []
    for word in (words or "").split():
        first, dots, last = word.partition("..")
        stem, _, begin = first.rpartition("-")
        listed += [f"{stem}-{n}" for n in range(int(begin), int(last) + 1)] if dots else [word]
    return listed


def build_event(word: str, options: Mapping[str, Any]) -> pb.WatchEvent:
    """The event of an instance as a scenario writes it."""
    event = pb.WatchEvent(version=int(options.get("version", 2)))
    if word[0] in "-~":
        gone = pb.InstanceRef(id=word[1:], cluster=options.get("cluster", CLUSTER))
        (event.delete if word[0] == "-" else event.left).CopyFrom(gone)
        return event
    event.put.CopyFrom(build_instance(word, options))
    return event


def build_instance(word: str, options: Mapping[str, Any]) -> instance_pb2.Instance:
    """`web-1`, or `web-1:8001` with a port number.

    Options: `host`, `node`, `service`, `port`, `ready`, `label`, `weight`.
    """
    id_, _, number = word.partition(":")
    made = instance_pb2.Instance()
    made.meta.id, made.meta.uid = id_, 1
    made.meta.service_id, made.meta.cluster = options.get("service", "web"), options.get("cluster", CLUSTER)
    made.spec.node_name, made.spec.allocation.host = options.get("node", "node-1"), options.get("host", "127.0.0.1")
    made.spec.allocation.port.add(name=options.get("port", "http"), number=int(number or 80))
    made.spec.revision.add(id="r1", target=instance_pb2.REVISION_TARGET_READY)
    if "label" in options:
        made.meta.labels["zone"] = options["label"]
    if "weight" in options:
        made.spec.weight = options["weight"]
    made.meta.annotations["padding"] = "x" * int(options.get("padding", 0))
    is_ready = options.get("ready", True)
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if is_ready else instance_pb2.CONDITION_STATUS_FALSE
    made.status.revision.add(id="r1").ready.CopyFrom(made.status.ready)
    return made


def _sources(step: ScenarioStep, replica: str) -> list[pb.Source]:
    options = step.options
    away = str(options.get("away", "")).split()
    if "members" in options:  # what a gateway says first: all its clusters, and which of them it cannot reach
        return [_silent_source(name, is_away=name in away) for name in options["members"].split()]
    if away:
        return [_silent_source(name, is_away=True) for name in away]
    source = pb.Source(cluster=options.get("cluster", CLUSTER), replica=replica, epoch=options.get("epoch", EPOCH))
    source.version = 2
    source.trust = _TRUST.get(options.get("trust", ""), pb.EPOCH_TRUST_UNSPECIFIED)
    source.stale, source.error = bool(options.get("stale")), str(options.get("error", ""))
    source.staleness.FromMilliseconds(int(1000 * options.get("staleness_s", 0)))
    return [source]


def _silent_source(cluster: str, *, is_away: bool) -> pb.Source:
    return pb.Source(cluster=cluster, error="no answer" if is_away else "")
