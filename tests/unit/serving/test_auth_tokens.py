"""Tokens and certificates: whose they are, when they end, and what is refused of them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import jwt
import pytest
from cryptography import x509
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving.auth.bearer_tokens import Demands, Tokens, parse_jwks
from serving.auth.certificates import Certificates, spiffe_id
from serving.auth.watched_files import BadSecurity
from serving.clock import ManualClock, SystemClock
from serving.errors import Unauthenticated
from tests.fuzz.jws import compact
from tests.support.certificates import Authority
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

NOW_S = 1_700_000_000.0
DEMANDS = Demands(AUDIENCE, ISSUER, 30.0)


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)


def tokens(issuer: Issuer, clock: ManualClock | None = None) -> Tokens:
    return Tokens(parse_jwks([issuer.jwks.read_bytes()]), DEMANDS, clock or ManualClock(wall_ms=round(NOW_S * 1000)))


@pytest.mark.parametrize("use_rsa", [False, True])
def test_a_token_gives_its_subject_and_expiry(tmp_path: Path, use_rsa: bool) -> None:
    issuer = Issuer(tmp_path, use_rsa=use_rsa)
    found = tokens(issuer).identity(issuer.token("ann", exp=NOW_S + 60))
    assert (found.name, found.expires_at) == ("ann", NOW_S + 60 + DEMANDS.skew_s)


def test_the_clock_skew_is_allowed_once_on_either_side(issuer: Issuer) -> None:
    clock = ManualClock(wall_ms=round(NOW_S * 1000))
    known = tokens(issuer, clock)
    assert known.identity(issuer.token("ann", exp=NOW_S - 29)).name == "ann"
    assert known.identity(issuer.token("ann", exp=NOW_S + 60, nbf=NOW_S + 29)).name == "ann"
    for claims in ({"exp": NOW_S - 31}, {"exp": NOW_S + 60, "nbf": NOW_S + 31}):
        with pytest.raises(Unauthenticated):
            known.identity(issuer.token("ann", **claims))


def test_a_remembered_token_expires_like_any_other(issuer: Issuer) -> None:
    clock = ManualClock(wall_ms=round(NOW_S * 1000))
    known, token = tokens(issuer, clock), issuer.token("ann", exp=NOW_S + 60)
    assert known.cached_identity("as this") is None
    assert known.identity(token, "as this") is known.cached_identity("as this")
    clock.advance(91)
    assert known.cached_identity("as this") is None
    with pytest.raises(Unauthenticated, match="expired"):
        known.identity(token, "as this")


def test_withdrawing_a_key_voids_its_remembered_tokens(issuer: Issuer, tmp_path: Path) -> None:
    known, token = tokens(issuer), issuer.token("ann", exp=NOW_S + 60)
    known.identity(token, "as this")
    known.use(parse_jwks([Issuer(tmp_path / "next", "key-2").jwks.read_bytes()]))
    assert known.cached_identity("as this") is None
    with pytest.raises(Unauthenticated):
        known.identity(token, "as this")


def test_a_token_signed_with_the_public_key_as_secret_is_refused(tmp_path: Path) -> None:
    """The old trick: an HMAC whose secret is the server's public key."""
    issuer = Issuer(tmp_path, use_rsa=True)
    body = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": issuer.kid}).encode()).decode()
    claims = {"sub": "admin", "aud": AUDIENCE, "iss": ISSUER, "exp": NOW_S + 60}
    for algorithm in ("HS256", "none"):
        forged = jwt.encode(claims, "k" * 32, algorithm="HS256", headers={"kid": issuer.kid})
        header, payload, signature = forged.split(".")
        if algorithm == "none":
            header = jwt.utils.base64url_encode(json.dumps({"alg": "none", "kid": issuer.kid}).encode()).decode()
            signature = ""
        with pytest.raises(Unauthenticated):
            tokens(issuer).identity(f"{header or body}.{payload}.{signature}")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kid": None}, "kid"),
        ({"d": "AAAA"}, "secret"),
        ({"kty": "oct", "k": "AAAA"}, "secret"),
        ({"p": "AAAA"}, "secret"),
        ({"kty": "EC"}, "cannot be used"),
        ({"kty": ""}, "cannot be used"),
        ({"x": "AAAA"}, "cannot be used"),
        ({"use": "enc"}, "cannot be used"),
        ({"alg": "RS256"}, "cannot be used"),
    ],
)
def test_a_key_set_with_an_unfit_or_secret_key_is_refused(issuer: Issuer, change: dict[str, Any], word: str) -> None:
    key = {k: v for k, v in {**issuer.public(), **change}.items() if v is not None}
    with pytest.raises(BadSecurity, match=word) as refused:
        parse_jwks([json.dumps({"keys": [key]}).encode()])
    assert issuer.public()["x"] not in str(refused.value), "whoever takes a secret for the key finds it in the log"


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": []}', b'{"keys": [1]}', b"\xff"])
def test_a_malformed_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(BadSecurity):
        parse_jwks([text])


def test_two_keys_of_one_id_are_refused(issuer: Issuer) -> None:
    with pytest.raises(BadSecurity, match="kid"):
        parse_jwks([json.dumps({"keys": [issuer.public(), issuer.public()]}).encode()])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.integers(0, 10_000), what=st.characters(codec="latin-1"), junk=st.text(max_size=60))
def test_no_changed_or_made_up_token_is_taken(issuer: Issuer, where: int, what: str, junk: str) -> None:
    token = issuer.token("ann", exp=NOW_S + 60)
    at = where % (token.rindex(".") - 1)
    changed = token[:at] + what + token[at + 1 :]
    for text in (junk, junk + ".a.b", *([changed] if changed != token else [])):
        with pytest.raises(Unauthenticated) as refused:
            tokens(issuer).identity(text)
        assert token not in str(refused.value)


@pytest.mark.parametrize("twice", ["header", "claims"])
def test_a_token_with_a_duplicate_claim_or_header_is_refused(issuer: Issuer, twice: str) -> None:
    header = json.dumps({"alg": "EdDSA", "kid": issuer.kid}).encode()
    claims = json.dumps({"sub": "ann", "aud": AUDIENCE, "iss": ISSUER, "exp": NOW_S + 60}).encode()
    assert tokens(issuer).identity(compact(header, claims, issuer.key).decode()).name == "ann"
    if twice == "header":
        header = b'{"kid":"another",' + header[1:]
    else:
        claims = b'{"sub":"bob",' + claims[1:]
    with pytest.raises(Unauthenticated, match="malformed"):
        tokens(issuer).identity(compact(header, claims, issuer.key).decode())


# --- certificates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uris", "word"),
    [
        (["spiffe://hq.test/agent/n1"], ""),
        ([], "none"),
        (["spiffe://hq.test/a", "spiffe://hq.test/b"], "this one has 2"),
        (["spiffe://elsewhere.test/agent/n1"], "not from trust domain"),
        (["https://hq.test/agent/n1"], "different URI"),
    ],
)
def test_a_certificate_has_exactly_one_id_of_our_trust_domain(tmp_path: Path, uris: list[str], word: str) -> None:
    pem = Authority(tmp_path).issue("caller", uris).cert.read_bytes()
    certificates = Certificates("hq.test", SystemClock())
    if not word:
        assert certificates.identity(pem).name == uris[0]
        return
    with pytest.raises(Unauthenticated, match=word):
        certificates.identity(pem)


def test_a_certificate_expires_even_on_an_open_connection(tmp_path: Path) -> None:
    pem = Authority(tmp_path).issue("caller", ["spiffe://hq.test/a"], timedelta(hours=1)).cert.read_bytes()
    clock = ManualClock(wall_ms=SystemClock().wall_ms())
    certificates = Certificates("hq.test", clock)
    certificates.identity(pem)
    clock.advance(3_601)
    with pytest.raises(Unauthenticated, match="expired"):
        certificates.identity(pem)


@pytest.mark.parametrize(
    "uri",
    [
        "spiffe://hq.test",
        "spiffe://hq.test/",
        "spiffe://hq.test//a",
        "spiffe://hq.test/a/",
        "spiffe://hq.test/a/../b",
        "spiffe://hq.test/./b",
        "spiffe://hq.test:80/a",
        "spiffe://user@hq.test/a",
        "spiffe://hq.test/a?b",
        "spiffe://hq.test/a#b",
        "spiffe://hq.test/%61",
        "spiffe://HQ.test/a",
        "SPIFFE://hq.test/a",
        "spiffe://hq.test/a\n",
        "spiffe://hq.test/" + "a" * 2_048,
        "spiffe://hq.test.evil.example/a",
        "spiffe://xhq.test/a",
    ],
)
def test_an_id_that_only_resembles_ours_is_refused(uri: str) -> None:
    with pytest.raises(Unauthenticated):
        spiffe_id(uri, "hq.test")


def test_a_token_that_is_good_for_longer_than_allowed_is_refused(issuer: Issuer) -> None:
    assert tokens(issuer).identity(issuer.token("ann", exp=NOW_S + DEMANDS.max_life_s)).name == "ann"
    with pytest.raises(Unauthenticated, match="more than 24 h"):
        tokens(issuer).identity(issuer.token("ann", exp=NOW_S + DEMANDS.max_life_s + 31))


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", [10**400, -(10**400), 1e300])
def test_absurd_times_in_a_token_are_refused(issuer: Issuer, claim: str, value: float) -> None:
    with pytest.raises(Unauthenticated):
        tokens(issuer).identity(issuer.token("ann", **{claim: value}))


def test_a_certificate_with_an_extension_twice_is_refused() -> None:
    duplicated = x509.DuplicateExtension("twice", x509.SubjectAlternativeName.oid)
    with (
        mock.patch.object(x509, "load_pem_x509_certificate", side_effect=duplicated),  # no tool of ours would make one
        pytest.raises(Unauthenticated, match="cannot parse"),
    ):
        Certificates("hq.test", ManualClock()).identity(b"a certificate")
