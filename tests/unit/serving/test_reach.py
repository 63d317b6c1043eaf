"""The reach of a method is checked before it runs; a method without a reach does not start."""

from __future__ import annotations

from typing import Any

import pytest

from serving.calls.incoming import RequestIds
from serving.calls.methods import Call, Duplex, UnaryMethod
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.rights.access import Access, Scope
from serving.rights.patterns import Patterns
from serving.rights.reach import EVERYTHING, Of, Reach, ReachForm
from serving.rights.rules import INSPECT, NOBODY, OPEN, READ, Role


@pytest.fixture
def context() -> ServerContext:
    return ServerContext(Limits(), SystemClock(), RequestIds("test"))


def test_a_method_without_a_reach_does_not_start(context: ServerContext) -> None:
    with pytest.raises(ValueError, match="S/Get names no reach"):
        context.guard("S/Get", READ, None)
    context.guard("S/Get", READ, EVERYTHING)
    for rule in (OPEN, NOBODY):  # which let in everybody, and nobody
        context.guard("S/Get", rule, None)


def test_a_checked_reach_needs_its_check() -> None:
    with pytest.raises(ValueError, match="needs a check"):
        Reach(Of.NODE, ReachForm.CHECKED)


def test_without_authentication_no_reach_is_checked(context: ServerContext) -> None:
    def run(_request: Any, _call: Call) -> Any:
        return "ran"

    method = UnaryMethod("S/Get", bytes, bytes, run, READ, Reach(Of.NODE, ReachForm.CHECKED, _never))
    assert context.guard(method.path, method.rule, method.reach).run_of(method)(None, Call()) == "ran"


def test_a_method_with_a_stream_of_requests_cannot_be_checked_beforehand(context: ServerContext) -> None:
    """The check would have no request to look at, and be skipped silently."""

    async def run(_requests: Any, _call: Call) -> Any:
        yield

    method = Duplex("S/Talk", bytes, bytes, run, READ, Reach(Of.NODE, ReachForm.CHECKED, _never))
    with pytest.raises(ValueError, match="S/Talk: requests of a stream"):
        context.guard(method.path, method.rule, method.reach).run_of(method)


def _never(_request: Any, _access: Access) -> None:
    raise AssertionError


def access(scope: Scope, role: Role = Role.OPERATOR) -> Access:
    return Access(None, INSPECT, {role: (scope,)})


def test_a_scope_may_be_limited_to_clusters() -> None:
    ams = access(Scope(clusters=Patterns(["ams"])))
    assert not ams.covers("web", "n1")
    assert not ams.covers_node("n1")
    assert not ams.proves(["web"], ["n1"])
    assert not ams.reaches_all()
    assert ams.covers("web", "n1", cluster="ams")
    assert not ams.covers("web", "n1", cluster="lon")
    assert ams.within("ams").reaches_all()


def test_a_monitor_reports_only_its_checks_on_its_nodes() -> None:
    monitor = access(Scope(nodes=Patterns(["lab-*"]), checks=Patterns(["disk"])), Role.MONITOR)
    assert monitor.covers_node("lab-1", (Role.MONITOR,), "disk")
    assert not monitor.covers_node("lab-1", (Role.MONITOR,), "ssh")
    assert not monitor.covers_node("prod-1", (Role.MONITOR,), "disk")
