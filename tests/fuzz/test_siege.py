"""Some seconds of attacks on a replica that asks who calls; and that the judge of them would notice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from serving.auth.bearer_tokens import Demands, Tokens, parse_jwks
from serving.auth.policy import parse
from serving.auth.watched_files import BadSecurity
from serving.clock import SystemClock
from serving.errors import Unauthenticated
from tests.fuzz.callers import CALLERS, POLICY, SECRET
from tests.fuzz.forged import Forger
from tests.fuzz.guarded import Guarded, broken
from tests.fuzz.siege import Siege
from tests.fuzz.target import FLAGS, faults_in, guarded_by
from tests.fuzz.verdict import Asked, Got, fault, is_kept_out
from tests.support.etcd import SharedEtcd
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

SEED = int(os.environ.get("HQ_FUZZ_SEED", "20261121"))
SECONDS = 6.0


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_nobody_gets_in_or_further_than_they_may(tmp_path: Path, etcd: SharedEtcd) -> None:
    guarded = Guarded(tmp_path / "files")
    where = ("--etcd", etcd.endpoint, "--prefix", etcd.prefix)
    async with guarded_by(tmp_path, *where, *guarded.flags, *FLAGS) as target:
        siege = Siege(guarded, target, SEED)
        report = await siege.run(SECONDS)
        assert target.is_alive()
        faults = report.faults + faults_in(target.log_text())
    assert not faults, f"seed {SEED}:\n" + "\n".join(faults)
    assert SECRET not in target.log_text() + guarded.files.audit.read_text()
    assert report.outcomes["grpc", "ok"] > 0, "nobody who may was let in: the fuzzer looks at the door only"
    assert report.outcomes["http", "200"] > 0
    assert report.outcomes["grpc", "unauthenticated"] > 0
    assert report.outcomes["grpc", "permission_denied"] > 0
    assert siege.kept > 0
    assert siege.spoiled_files > 0


@pytest.fixture(scope="module")
def issuers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Issuer, Issuer]:
    directory = tmp_path_factory.mktemp("issuers")
    made = Issuer(directory / "1"), Issuer(directory / "2", "key-2", use_rsa=True)
    made[0].publish(*made)
    return made


@pytest.mark.long
def test_of_thousands_of_tokens_only_the_genuine_ones_are_taken(issuers: tuple[Issuer, Issuer]) -> None:
    tokens = Tokens(parse_jwks([issuers[0].jwks.read_bytes()]), Demands(AUDIENCE, ISSUER, 30.0), SystemClock())
    forger = Forger(issuers, random.Random(SEED))
    policy, roles = parse(POLICY.encode()), {caller.name: caller.role for caller in CALLERS}
    for proof in (proof for proof in (forger.proof() for _ in range(2_000)) if len(proof.values) == 1):
        name = taken_as(tokens, proof.values[0].decode("latin-1").partition(" ")[2])
        granted = set(policy.scopes(name, "default"))
        if proof.caller is None:
            assert not granted, f"{proof.kind}: {name}"
        else:
            assert (name, granted) == (proof.caller.name, {roles[name]} - {""})


def taken_as(tokens: Tokens, token: str) -> str:
    """Identity that the server takes; empty: it is refused, in a message without the token."""
    try:
        return tokens.identity(token).name
    except Unauthenticated as error:
        words = str(error)
    assert len(token) < 20 or token not in words
    return ""


@pytest.mark.long
def test_a_broken_policy_or_jwks_is_refused(issuers: tuple[Issuer, Issuer]) -> None:
    rng, jwks = random.Random(SEED), issuers[0].jwks.read_bytes()
    for _ in range(100):
        with pytest.raises(BadSecurity):
            parse(broken(rng, "policy", POLICY.encode()))
        with pytest.raises(BadSecurity):
            parse_jwks([broken(rng, "jwks", jwks)])


ASKED = Asked("GetInstance", "GetInstance")


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (ASKED, Got("grpc", "internal")),
        (ASKED, Got("http", "unavailable", "STORE_UNAVAILABLE", 503)),
        (ASKED, Got("http", "unavailable", "BEHIND_VERSION", 503)),
        (ASKED, Got("grpc", "unavailable")),
        (ASKED, Got("grpc", "deadline_exceeded")),
        (ASKED, Got("grpc", "unimplemented")),
        (Asked("GetInstance", "GetInstance", is_spoiled=True), Got("http", "unimplemented", "X", 501)),
        (ASKED, Got("http", "", status=502)),
        (ASKED, Got("http", "", status=0)),
    ],
)
def test_an_error_of_the_server_that_the_call_did_not_provoke_is_a_fault(asked: Asked, got: Got) -> None:
    assert fault(asked, got)


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (Asked("x", "GetInstance", names_version=True), Got("http", "unavailable", "BEHIND_VERSION", 503)),
        (Asked("x", "GetInstance", has_deadline=True), Got("http", "deadline_exceeded", status=504)),
        (Asked("x", "GetInstance", is_spoiled=True), Got("http", "unimplemented", "UNKNOWN_METHOD", 404)),
        (Asked("x", "", is_spoiled=True, names_version=True), Got("http", "", status=503)),
        (ASKED, Got("grpc", "not_found")),
    ],
)
def test_an_error_that_the_call_provoked_is_no_fault(asked: Asked, got: Got) -> None:
    assert not fault(asked, got)


def test_a_caller_that_is_told_anything_counts_as_let_in() -> None:
    assert is_kept_out(Got("grpc", "unauthenticated"))
    assert is_kept_out(Got("http", "unauthenticated", status=200, body=b"\2\0\0\0\0"))
    for got in (
        Got("grpc", ""),
        Got("grpc", "not_found"),
        Got("grpc", "unauthenticated", body=b"x"),
        Got("http", "unauthenticated", status=200, body=b"\0\0\0\0\0"),
        Got("http", "", status=200),
        Got("http", "failed_precondition", status=400),
    ):
        assert not is_kept_out(got)
