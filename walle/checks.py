"""Other systems' reports on hosts, as checks: Prometheus alerts, and HQ's silent nodes.

Wall-E trusts HQ's silent nodes only while HQ is fresh, its store is trusted and its guard does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from hqpb.v1 import service_pb2
from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE, Condition, Instance, InstanceStatus
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
_REFUSED: Final = "ReportsRefused"
_PATIENCE_S: Final = 600  # HQ's default timeout, for nodes where nothing has expired


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
    """UNREACHABLE of each node of one location that is known to be silent, or known not to be.

    `suspended`: nodes under planned work, whose silence means nothing.
    """
    nodes: dict[str, list[InstanceStatus]] = {}
    for instance in instances:
        if instance.status.revision:
            nodes.setdefault(instance.spec.node_name, []).append(instance.status)
    now_s = max((_newest_s(agent) for agents in nodes.values() for agent in agents), default=0)
    states = {node: is_silent(agents, now_s) for node, agents in nodes.items() if node}
    return [
        _report(node, state) for node, state in states.items() if state is False or (state and node not in suspended)
    ]


def is_silent(agents: Sequence[InstanceStatus], now_s: int) -> bool | None:
    """Whether none of a node's agents is heard any more; None: that is not known.

    HQ expires ready revisions only, so at least one agent must have expired. Those that had nothing ready are silent,
    too, if their last report is older than the silence that HQ waited for.

    Args:
        now_s: the newest time that the location has told. All times are then of one source, and stand still while
            HQ hears nobody.
    """
    expiries = [expiry for agent in agents if (expiry := _expiry(agent)) is not None]
    patience_s = max((expiry.receipt.silence.seconds for expiry in expiries), default=0) or _PATIENCE_S
    unexpired = (agent for agent in agents if _expiry(agent) is None)
    if any(_is_alive(agent) or agent.last_heartbeat_time.seconds + patience_s >= now_s for agent in unexpired):
        return False
    return True if expiries else None


def _expiry(agent: InstanceStatus) -> Condition | None:
    """HQ's decision since which nothing came from an agent."""
    decisions = [one.ready for one in agent.revision if one.ready.reason == _EXPIRED]
    newest = max(decisions, key=lambda one: one.last_transition_time.seconds, default=None)
    if newest is None or _is_alive(agent):
        return None
    return newest if agent.last_heartbeat_time.seconds <= newest.last_transition_time.seconds else None


def _is_alive(agent: InstanceStatus) -> bool:
    """One of its revisions is ready, or HQ refuses what it reports."""
    return any(one.ready.status == CONDITION_STATUS_TRUE or one.ready.reason == _REFUSED for one in agent.revision)


def _newest_s(agent: InstanceStatus) -> int:
    expiry = _expiry(agent)
    return max(agent.last_heartbeat_time.seconds, expiry.last_transition_time.seconds if expiry else 0)


def _report(node: str, failing: bool) -> HostChecks:
    text = "all agents of the node are silent" if failing else "agents of the node report"
    check = CheckReport(name=UNREACHABLE, failing=failing, text=text, source=FROM_HQ)
    return HostChecks(host=node, check=[check])
