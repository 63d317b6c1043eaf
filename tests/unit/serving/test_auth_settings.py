"""Inconsistent or incomplete security flags are refused by name before anything listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serving.auth.security import check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.clock import SystemClock
from serving.sockets import address_fault, is_loopback
from tests.support.secured import Secured


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"tls_key": ""}, "--tls-cert needs --tls-key"),
        ({"tls_cert": ""}, "--tls-key needs --tls-cert"),
        ({"issuer": ""}, "--jwks needs --issuer"),
        ({"policy": ""}, "--jwks needs --policy"),
        ({"jwks": "", "issuer": ""}, "--policy has no effect"),
        ({"jwks": "", "issuer": "", "policy": ""}, "--audit-log needs --policy"),
        ({"jwks": ""}, "--issuer needs --jwks"),
        ({"grpc_mtls": "127.0.0.1:0"}, "--grpc-mtls needs --client-ca"),
        ({"trust_domain": "hq.test"}, "--trust-domain needs --client-ca"),
        ({"client_ca": "ca.pem"}, "--client-ca needs --trust-domain"),
        ({"policy": "nowhere.yaml"}, "--policy nowhere.yaml: cannot be read"),
        ({"jwks": "nowhere.json"}, "--jwks nowhere.json: cannot be read"),
        ({"audit_log": "/nowhere/audit"}, "--audit-log /nowhere/audit: cannot be written"),
    ],
)
def test_a_missing_flag_is_named(tmp_path: Path, flags: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSecurity, match=words):
        security_of(Secured(tmp_path).given(**flags), SystemClock(), "test")


def test_a_gateway_needs_tokens_since_it_cannot_pass_certificates_on(tmp_path: Path) -> None:
    files = Secured(tmp_path)
    with pytest.raises(BadSecurity, match="--policy needs --jwks at a federation gateway"):
        security_of(files.with_certificates(jwks="", issuer=""), SystemClock(), None, forwards=True)


def test_a_server_of_all_clusters_takes_certificates_without_tokens(tmp_path: Path) -> None:
    made = security_of(Secured(tmp_path).with_certificates(jwks="", issuer=""), SystemClock(), None)
    assert made is not None
    assert made.gate is not None
    assert made.gate.certificates is not None


@pytest.mark.parametrize("flag", ["grpc", "http", "worker_pages"])
@pytest.mark.parametrize("lacking", [{}, {"tls_cert": ""}, {"jwks": ""}])
def test_a_server_listens_beyond_this_machine_only_with_tls_and_identities(
    tmp_path: Path, flag: str, lacking: dict[str, Any]
) -> None:
    loopback = {"grpc": "127.0.0.1:0", "http": "[::1]:0", "worker_pages": ""}
    given = Secured(tmp_path).given(**{**loopback, **lacking})
    check_exposure(given)
    given[flag] = "10.0.0.1:7071"
    if not lacking:
        check_exposure(given)
        return
    with pytest.raises(BadSecurity, match="--insecure"):
        check_exposure(given)
    check_exposure({**given, "insecure": True})


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("127.0.0.1", "'127.0.0.1' is not a valid port: write HOST:PORT, port 0 for a free one"),
        ("localhost:", "'' is not a valid port"),
        ("[::1]", "names no port"),
        ("a:65536", "'65536' is not a valid port"),
        ("http://a:1", "give HOST:PORT, without a scheme"),
        *((address, "is not HOST:PORT: write an IPv6") for address in ("::1", "2001:db8::1:7071", "[::1]:7:7071")),
        *((address, "") for address in ("127.0.0.1:0", ":7071", "[::1]:7071", "unix:/run/hq")),
    ],
)
def test_a_malformed_address_is_refused_with_what_to_write(address: str, fault: str) -> None:
    assert address_fault(address, is_own=True).startswith(fault)
    assert bool(address_fault(address, is_own=True)) == bool(fault)
    assert bool(address_fault(address)) == (bool(fault) or address in ("127.0.0.1:0", ":7071"))


def test_a_command_without_the_flags_of_security_is_not_told_to_use_them() -> None:
    with pytest.raises(BadSecurity, match=r"^--grpc 0\.0\.0\.0:0 is reachable from other machines: serve on 127"):
        check_exposure({"grpc": "0.0.0.0:0", "insecure": False})


@pytest.mark.parametrize(
    "name", ["127.evil.example:7071", "127.0.0.1.evil.example:7071", ":7071", "[::]:7071", "0.0.0.0:1"]
)
def test_a_name_that_only_begins_like_a_loopback_address_is_another_machine(name: str) -> None:
    assert not is_loopback(name)
    assert all(map(is_loopback, ("127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1")))
