"""report: an agent played by hand, and what it is told when it plays badly."""

from __future__ import annotations

import json

import pytest

from tests.clients.hqctl.conftest import Hqctl, documents


@pytest.fixture
def name(hqctl: Hqctl, service: str) -> str:
    assert hqctl("apply", "-f", "-", stdin=documents(service, "1")).code == 0
    return f"{service}-1"


def test_a_report_needs_either_ready_or_not_ready(hqctl: Hqctl, name: str) -> None:
    done = hqctl("report", name, "r1")
    assert done.code == 2
    assert "--ready or --not-ready" in done.err


def test_a_revision_that_is_not_there_is_not_found(hqctl: Hqctl, name: str) -> None:
    done = hqctl("report", name, "r9", "--ready")
    assert done.code == 3
    assert "has no revision r9" in done.err
    assert "hqctl revision show" in done.err


def test_the_reason_for_not_being_ready_is_not_used_for_installed(hqctl: Hqctl, name: str) -> None:
    assert hqctl("report", name, "r1", "--not-ready", "--reason", "DiskFull").code == 0
    (status,) = json.loads(hqctl("get", name, "--strong", "-o", "json").out)["status"]["revision"]
    assert status["ready"]["reason"] == "DiskFull"
    assert status["installed"]["reason"] == "ReportedByHand"


def test_times_of_an_instance_are_applied_and_shown_and_hold_for_its_agent(hqctl: Hqctl, service: str) -> None:
    own = ", liveness: {reportInterval: 20s, timeout: 60s}"
    done = hqctl("apply", "-f", "-", stdin=documents(service, "1", extra=own))
    assert done.code == 0, done.err
    name = f"{service}-1"
    shown = json.loads(hqctl("get", name, "--strong", "-o", "json").out)
    assert shown["spec"]["liveness"] == {"reportInterval": "20s", "timeout": "60s"}
    assert "it expires after 1m" in hqctl("report", name, "r1", "--ready").out
    assert "(reports every 20s, timeout 1m)" in hqctl("why", name).out
    assert hqctl("apply", "-f", "-", stdin=documents(service, "1")).code == 0
    assert "liveness" not in json.loads(hqctl("get", name, "--strong", "-o", "json").out)["spec"]
    refused = hqctl("apply", "-f", "-", stdin=documents(service, "2", extra=own.replace("60s", "50s")))
    assert "spec.liveness.timeout" in refused.err + refused.out
