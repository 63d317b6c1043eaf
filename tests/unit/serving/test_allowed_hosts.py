"""By which names a server without authentication may be called over plain HTTP/1.1."""

from __future__ import annotations

import pytest

from serving.standard.hosts import AllowedHosts

BOUND = ("hq-1.example:7071", "0.0.0.0:7080", "[::1]:7081", "unix:/run/hq.sock")


def allows(authority: str, *patterns: str, target: str = "/hq.v1.InstanceService/GetInstance") -> bool:
    return AllowedHosts(BOUND, patterns).allows(authority.encode("latin-1"), target.encode())


@pytest.mark.parametrize(
    "authority",
    [
        *("127.0.0.1", "127.0.0.1:7080", "10.1.2.3:80", "[::1]", "[::1]:7080", "[2001:db8::1]:80", "0.0.0.0:7080"),
        *("localhost", "localhost:7080", "LocalHost.", "web.localhost:7080"),
        *("hq-1.example", "hq-1.example:443", "HQ-1.example"),
        "",  # HTTP/1.0 has none, and no browser leaves it out
    ],
)
def test_calls_by_address_by_localhost_or_by_a_listening_name_are_answered(authority: str) -> None:
    assert allows(authority)


@pytest.mark.parametrize(
    "authority",
    [
        *("evil.example", "evil.example:7080", "hq-1.example.evil.example", "127.0.0.1.evil.example", "unix"),
        *("127.0.0.1@evil.example", "evil.example@127.0.0.1", "localhost.evil.example", "evillocalhost", "[evil]:80"),
        *("127.0.0", "\xe4.example"),
    ],
)
def test_calls_by_any_other_name_are_refused(authority: str) -> None:
    assert not allows(authority)


@pytest.mark.parametrize(
    ("pattern", "authority", "expected"),
    [
        ("hq", "hq:7080", True),
        ("HQ.prod", "hq.PROD", True),
        ("hq", "hq.prod", False),
        ("*.prod", "hq.prod:80", True),
        ("*.prod", "a.hq.prod", True),
        ("*.prod", "prod", False),
        ("*.prod", "hq.prod.evil.example", False),
        ("*", "evil.example", True),
    ],
)
def test_patterns_allow_further_names(pattern: str, authority: str, *, expected: bool) -> None:
    assert allows(authority, "other.example", pattern) is expected


@pytest.mark.parametrize("target", ["/livez", "/readyz?fresh=1s", "/metrics"])
def test_probes_and_prometheus_may_call_by_any_name(target: str) -> None:
    assert allows("evil.example", target=target)
