"""Other systems' reports on hosts, as checks: Prometheus alerts, and HQ's silent nodes.

Wall-E trusts HQ's silent nodes only while HQ is fresh, its store is trusted and its guard does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from hqpb.v1 import service_pb2
from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE, Condition, Instance
from walle.healing.scheme import UNREACHABLE
from wallepb.v1.service_pb2 import Alert, CheckReport, HostChecks

FROM_ALERTMANAGER = "alertmanager"


def checks_of(alerts: Iterable[Alert]) -> tuple[list[HostChecks], list[str]]:
    """Checks by host, and the alerts that name no host or check."""
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
            CheckReport(
                name=check,
                failing=alert.status == "firing",
                text=text,
                source=FROM_ALERTMANAGER,
                fingerprint=alert.fingerprint,
                starts_at=alert.starts_at,
            )
        )
    return list(by_host.values()), nameless


def host_of(alert: Alert) -> str:
    """The host of an alert: `host`, or of `instance`, host:port by custom; IPv6 addresses keep their colons."""
    named = alert.labels.get("host", "")
    if named:
        return named
    instance = alert.labels.get("instance", "")
    host, colon, port = instance.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() and (":" not in host or host.startswith("[")) else instance


FROM_HQ: Final = "hq"
_TIMED_OUT: Final = "HeartbeatTimeout"
_REFUSED: Final = "ReportsRefused"


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


def reports(instances: Iterable[Instance], suspended: Collection[str] = ()) -> list[HostChecks]:
    """The check UNREACHABLE of each node of one location that is known to be silent, or known not to be.

    `suspended`: nodes under planned work, whose silence means nothing.
    """
    nodes: dict[str, list[Condition]] = {}
    for instance in instances:
        nodes.setdefault(instance.spec.node_name, []).append(instance.status.agent)
    states = {node: is_silent(agents) for node, agents in nodes.items() if node}
    return [
        _report(node, state) for node, state in states.items() if state is False or (state and node not in suspended)
    ]


def is_silent(agents: Iterable[Condition]) -> bool | None:
    """Whether none of a node's agents is heard any more, by what HQ says of each; None: that is not known.

    At least one must have fallen silent: an agent that never reported silences no node, nor does one that HQ itself
    refuses. If HQ is of a version that does not say so, nothing is known.
    """
    agents = list(agents)
    if any(agent.status == CONDITION_STATUS_TRUE or agent.reason == _REFUSED for agent in agents):
        return False
    return True if any(agent.reason == _TIMED_OUT for agent in agents) else None


def _report(node: str, failing: bool) -> HostChecks:
    text = "all agents of the node are silent" if failing else "agents of the node report"
    check = CheckReport(name=UNREACHABLE, failing=failing, text=text, source=FROM_HQ)
    return HostChecks(host=node, check=[check])
