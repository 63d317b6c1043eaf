"""Other systems' reports on hosts, as checks: Prometheus alerts, and HQ's silent nodes.

Wall-E trusts HQ's silent nodes only while HQ is fresh, its store is trusted and its guard does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hqpb.v1 import service_pb2
from hqpb.v1.instance_pb2 import CONDITION_STATUS_FALSE, Instance, RevisionStatus
from walle.healing.decision import UNREACHABLE
from wallepb.v1.service_pb2 import Alert, CheckReport, HostChecks

FROM_ALERTMANAGER = "alertmanager"


def checks_of(alerts: Iterable[Alert]) -> tuple[list[HostChecks], list[str]]:
    """By host, and the alerts that name no host or check."""
    by_host: dict[str, HostChecks] = {}
    nameless = []
    for alert in alerts:
        host, check = host_of(alert), alert.labels.get("check") or alert.labels.get("alertname", "")
        if not host or not check:
            nameless.append(f"an alert without {'a host' if not host else 'a check'}: {dict(alert.labels)}"[:200])
            continue
        text = alert.annotations.get("summary") or alert.annotations.get("description", "")
        report = by_host.setdefault(host, HostChecks(host=host))
        report.check.append(
            CheckReport(name=check, failing=alert.status == "firing", text=text, source=FROM_ALERTMANAGER)
        )
    return list(by_host.values()), nameless


def host_of(alert: Alert) -> str:
    """`instance` is host:port by custom; IPv6 addresses keep their colons."""
    named = alert.labels.get("host", "")
    if named:
        return named
    instance = alert.labels.get("instance", "")
    host, colon, port = instance.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() and (":" not in host or host.startswith("[")) else instance


FROM_HQ: Final = "hq"
_EXPIRED: Final = "HeartbeatTimeout"


def why_not_believed(sources: Iterable[service_pb2.Source], guard: service_pb2.GuardState) -> str:
    """Why silence is ignored now; empty: it counts."""
    if guard.holding:
        return f"HQ's guard is holding expiries: {guard.verdict}"
    for source in sources:
        if source.stale or source.error:
            return f"HQ is stale: {source.error or source.replica}"
        if source.trust == service_pb2.EPOCH_TRUST_DOUBTED:
            return "HQ's epoch is in doubt"
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
    check = CheckReport(name=UNREACHABLE, failing=is_silent, text=text, source=FROM_HQ)
    return HostChecks(host=node, check=[check])
