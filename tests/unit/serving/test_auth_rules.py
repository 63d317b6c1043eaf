"""Every call has a rule, and the same one at a replica and at a gateway."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from federated.api import GatewayApi
from federated.gateway import FederatedGateway
from federated.locations.channel import Dialer
from federated.locations.config import ConfigFile
from federated.locations.locations import Locations
from hq.api.admin_api import AdminApi
from hq.api.instance_api import InstanceApi
from hqapi import prometheus_sd
from hqapi.prometheus_sd import ScrapeTarget
from hqapi.rules import FETCH, SUSPEND
from hqpb.v1 import admin_pb2, service_pb2
from serving.auth.audit import Audit, LogSink
from serving.auth.gate import Authenticator
from serving.auth.policy import parse
from serving.clock import SystemClock
from serving.errors import PermissionDenied
from serving.rights.access import Identity, ProofKind
from serving.rights.rules import NOBODY, OPEN, OPERATE, READ, AuditLevel, Role, Rule
from serving.standard.pages import HttpPage, index_page, own_pages
from tests.support.in_process_replica import running
from tests.support.secured import POLICY
from tests.wire.fake_table import FakeHealth

PAGES = {**own_pages(FakeHealth(), CollectorRegistry()), "/": index_page([], [])}
CALLS = [
    f"{service.full_name}/{method.name}"
    for file in (service_pb2.DESCRIPTOR, admin_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
]


@pytest.fixture
async def replica_rules() -> dict[str, Rule]:
    async with running() as registry:
        methods = [*InstanceApi(registry, 0).methods(), *AdminApi(registry).methods()]
    return {method.path: method.rule for method in methods}


@pytest.fixture
async def gateway_rules(tmp_path: Path) -> dict[str, Rule]:
    config = tmp_path / "gateway.yaml"
    config.write_text("locations: {east: {replicas: ['127.0.0.1:1']}}")
    clock, rng = _GatewayClock(), random.Random(1)
    locations = Locations(ConfigFile(config), clock, rng, Dialer(), 0)
    api = GatewayApi(FederatedGateway(locations, clock, rng, 1))
    methods = [*api.methods(), *api.refused_methods()]
    await locations.end()
    return {method.path: method.rule for method in methods}


class _GatewayClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_has_a_rule_with_roles_and_is_not_open(replica_rules: dict[str, Rule], call: str) -> None:
    rule = replica_rules[call]
    assert rule is not NOBODY
    assert rule.roles
    assert not rule.is_open


@pytest.mark.parametrize("call", CALLS)
def test_a_gateway_has_the_very_same_rules(
    replica_rules: dict[str, Rule], gateway_rules: dict[str, Rule], call: str
) -> None:
    assert gateway_rules[call] is replica_rules[call]


@pytest.mark.parametrize("rule", [NOBODY, HttpPage(PAGES["/livez"].answer).rule])
def test_a_call_or_page_without_a_rule_is_denied_to_everybody(rule: Rule) -> None:
    gate = Authenticator(parse(POLICY.encode()), None, None, Audit(LogSink(), SystemClock()), SystemClock())
    for name in ("admin", "operator", "reader/ann"):
        with pytest.raises(PermissionDenied):
            gate.access(Identity(name, ProofKind.TOKEN, 0.0), rule)


def test_only_agents_and_uploaders_fetch_secret_descriptors() -> None:
    assert FETCH.roles == {Role.AGENT, Role.UPLOADER}


def test_orders_are_for_operators_alone_and_always_recorded(replica_rules: dict[str, Rule]) -> None:
    orders = {call for call, rule in replica_rules.items() if rule is OPERATE}
    admin = "hq.v1.AdminService"
    assert orders == {f"{admin}/{name}" for name in ("ReleaseGuard", "ForceGuard", "ConfirmEpoch")}
    suspends = {call for call, rule in replica_rules.items() if rule is SUSPEND}
    assert suspends == {f"{admin}/{name}" for name in ("SuspendNode", "ResumeNode")}
    assert OPERATE.roles == {Role.OPERATOR}
    assert SUSPEND.roles == {Role.OPERATOR, Role.HEALER}
    assert OPERATE.record is SUSPEND.record is AuditLevel.ORDERS


def test_reads_are_not_recorded_reports_only_if_denied_and_writes_always(replica_rules: dict[str, Rule]) -> None:
    def recorded(record: AuditLevel) -> set[str]:
        return {call.partition("/")[2] for call, rule in replica_rules.items() if rule.record is record}

    reads = ("Get", "List", "Find", "Count", "Watch", "Explain")
    assert all(name.startswith(reads) for name in recorded(AuditLevel.NOTHING))
    assert recorded(AuditLevel.DENIALS) == {"ReportStatus", "ReportStatuses"}


async def _no_targets(*_: Any) -> AsyncIterator[Sequence[ScrapeTarget]]:
    yield ()


def test_only_the_start_page_and_health_pages_are_open() -> None:
    assert {path for path, page in PAGES.items() if page.rule is OPEN} == {"/", "/livez", "/readyz"}
    assert prometheus_sd.pages(_no_targets, CollectorRegistry())["/sd/prometheus"].rule is READ
