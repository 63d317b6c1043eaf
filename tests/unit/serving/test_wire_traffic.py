"""Counters of calls, and the rate that one caller may have."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from serving.calls.incoming import RequestIds
from serving.clock import ManualClock
from serving.context import ServerContext
from serving.errors import Overloaded
from serving.limiting.limits import Limits
from serving.limiting.per_peer import PeerRate
from serving.telemetry.metrics import Table
from serving.telemetry.traffic import METRICS


def test_calls_are_counted_by_transport_method_and_code() -> None:
    shared = ServerContext(Limits(), ManualClock(), RequestIds("test"))
    stats = shared.traffic.stats("grpc", "S/M")
    stats.answered(0.0003)
    stats.answered(0.0005)
    stats.answered(100.0)
    stats.count_end("NOT_FOUND")
    shared.admission.refused["max_calls"] += 2
    registry = CollectorRegistry()
    registry.register(Table(METRICS, shared.traffic))
    lines = generate_latest(registry).decode().splitlines()
    assert 'hq_calls_total{code="OK",method="S/M",transport="grpc"} 3.0' in lines
    assert 'hq_calls_total{code="NOT_FOUND",method="S/M",transport="grpc"} 1.0' in lines
    assert 'hq_call_seconds_bucket{le="0.0005",method="S/M",transport="grpc"} 2.0' in lines
    assert 'hq_call_seconds_bucket{le="10.0",method="S/M",transport="grpc"} 2.0' in lines
    assert 'hq_call_seconds_bucket{le="+Inf",method="S/M",transport="grpc"} 3.0' in lines
    assert 'hq_call_seconds_count{method="S/M",transport="grpc"} 3.0' in lines
    assert 'hq_refused_total{limit="max_calls"} 2.0' in lines
    assert "hq_calls_in_flight 0.0" in lines


def test_a_caller_may_burst_and_is_then_limited_to_its_rate() -> None:
    clock = ManualClock()
    rate = PeerRate(10.0, clock)
    for _ in range(20):
        rate.take("10.0.0.1")
    with pytest.raises(Overloaded, match=r"10\.0\.0\.1 has made more than 10 calls per second") as raised:
        rate.take("10.0.0.1")
    assert raised.value.retry_delay_s == pytest.approx(0.1)
    clock.advance(0.1)
    rate.take("10.0.0.1")
    with pytest.raises(Overloaded):
        rate.take("10.0.0.1")


def test_the_rate_of_one_caller_does_not_limit_another() -> None:
    rate = PeerRate(1.0, ManualClock())
    for _ in range(2):
        rate.take("10.0.0.1")
    with pytest.raises(Overloaded):
        rate.take("10.0.0.1")
    rate.take("[::1]")


def test_callers_are_remembered_within_bounds() -> None:
    rate = PeerRate(1.0, ManualClock())
    for number in range(20_000):
        rate.take(f"host{number}")
    assert len(rate._buckets) == 10_000
