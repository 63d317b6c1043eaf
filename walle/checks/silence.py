"""HQ's silent nodes as the check UNREACHABLE: all agents of a node are silent, and HQ is surely not the reason.

Wall-E believes HQ's silence only while HQ is fresh, its store is believed and its guard does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hqpb.v1 import service_pb2
from hqpb.v1.instance_pb2 import CONDITION_STATUS_FALSE, Instance, RevisionStatus
from walle.healing.scheme import UNREACHABLE
from wallepb.v1.service_pb2 import CheckReport, HostChecks

SOURCE: Final = "hq"
_EXPIRED: Final = "HeartbeatTimeout"


def why_not_believed(sources: Iterable[service_pb2.Source], guard: service_pb2.GuardState) -> str:
    """Why nothing follows from silence now; empty: it counts."""
    if guard.holding:
        return f"HQ's guard holds: {guard.verdict}"
    for source in sources:
        if source.stale or source.error:
            return f"HQ is stale: {source.error or source.replica}"
        if source.trust == service_pb2.EPOCH_TRUST_DOUBTED:
            return "HQ's epoch is doubted"
    return ""


def reports(instances: Iterable[Instance]) -> list[HostChecks]:
    """One per node that has ever reported: UNREACHABLE fails if every reported revision there expired."""
    nodes: dict[str, list[bool]] = {}
    for instance in instances:
        for revision in instance.status.revision:
            nodes.setdefault(instance.spec.node_name, []).append(_is_expired(revision))
    return [_report(node, all(expired)) for node, expired in nodes.items() if node]


def _is_expired(revision: RevisionStatus) -> bool:
    return revision.ready.status == CONDITION_STATUS_FALSE and revision.ready.reason == _EXPIRED


def _report(node: str, is_silent: bool) -> HostChecks:
    text = "all agents of the node are silent" if is_silent else "agents of the node report"
    check = CheckReport(name=UNREACHABLE, failing=is_silent, text=text, source=SOURCE)
    return HostChecks(host=node, check=[check])
