"""Prometheus alerts as checks: the label `host` (or `instance`, without its port) and `check` (or `alertname`)."""

from __future__ import annotations

from collections.abc import Iterable

from wallepb.v1.service_pb2 import Alert, CheckReport, HostChecks

SOURCE = "alertmanager"


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
        report.check.append(CheckReport(name=check, failing=alert.status == "firing", text=text, source=SOURCE))
    return list(by_host.values()), nameless


def host_of(alert: Alert) -> str:
    """`instance` is host:port by custom; IPv6 addresses keep their colons."""
    named = alert.labels.get("host", "")
    if named:
        return named
    instance = alert.labels.get("instance", "")
    host, colon, port = instance.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() and (":" not in host or host.startswith("[")) else instance
