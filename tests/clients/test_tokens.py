"""Tokens from the command line: signed for operators, taken by servers, inspected without being shown."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from serving.auth.bearer_tokens import parse_jwks
from tests.clients.process import hqctl
from tests.support.secured import Secured, served

KEYS: dict[str, Callable[[], Any]] = {
    "Ed25519": Ed25519PrivateKey.generate,
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


def lay_down(path: Path, key: Any, password: bytes = b"") -> Path:
    locked = BestAvailableEncryption(password) if password else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    return path


@pytest.mark.long
@pytest.mark.parametrize("kind", KEYS)
async def test_a_signed_token_opens_a_server_that_knows_its_key(tmp_path: Path, kind: str) -> None:
    key = lay_down(tmp_path / "key.pem", KEYS[kind]())
    published = await hqctl("", "token", "jwks", "--key", str(key), "--kid", "k1")
    assert published.code == 0, published.err
    (tmp_path / "jwks.json").write_text(published.out)
    token = tmp_path / "mine.token"
    signing = ("token", "sign", "--key", str(key), "--kid", "k1", "--issuer", "me", "--for", "5m", "--out", str(token))
    assert (await hqctl("", *signing, "--subject", "operator")).code == 0
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    secured = Secured(tmp_path / "secured")
    security = secured.security(jwks=str(tmp_path / "jwks.json"), issuer="me")
    asking = ("--ca", str(secured.authority.cert), "--token-file", str(token))
    async with served(security) as replica:
        done = await hqctl(replica.addresses.grpc, *asking, "status")
        assert done.code == 0, done.err
        done = await hqctl(replica.addresses.grpc, "count", *asking)
        assert "operator is not authorized to read" not in done.err
        assert done.code == 0, done.err
        plain = await hqctl(replica.addresses.grpc, "--ca", str(secured.authority.cert), "count")
        assert "not authenticated" in plain.err
        assert (await hqctl("", *signing, "--subject", "stranger")).code == 0
        denied = await hqctl(replica.addresses.grpc, *asking, "count")
        assert "stranger is not authorized to read" in denied.err


async def test_inspect_shows_what_a_token_says_but_not_its_signature(tmp_path: Path) -> None:
    key = lay_down(tmp_path / "key.pem", Ed25519PrivateKey.generate())
    signed = await hqctl(
        "", "token", "sign", "--key", str(key), "--kid", "k1", "--subject", "ops/ada", "--audience", "hq-2"
    )
    token = signed.out.strip()
    shown = await hqctl("", "token", "inspect", stdin=token)
    said = json.loads(shown.out)
    assert said["header"]["kid"] == "k1"
    assert (said["claims"]["sub"], said["claims"]["aud"], said["claims"]["iss"]) == ("ops/ada", "hq-2", "hqctl")
    assert token.rpartition(".")[2] not in shown.out
    assert said["claims"]["exp"].endswith("+00:00")


async def test_jwks_publishes_several_keys_and_no_private_one(tmp_path: Path) -> None:
    old, new = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    lay_down(tmp_path / "new.pem", new)
    public = old.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "old.pub").write_bytes(public)
    named = [str(part) for kid in ("old.pub", "new.pem") for part in ("--key", tmp_path / kid, "--kid", kid)]
    done = await hqctl("", "token", "jwks", *named)
    assert sorted(parse_jwks([done.out.encode()])) == ["new.pem", "old.pub"]
    assert all("d" not in entry for entry in json.loads(done.out)["keys"])


@pytest.mark.parametrize("fault", ["encrypted", "elliptic", "short", "text", "absent"])
async def test_a_key_that_cannot_sign_is_told_by_the_name_of_its_file(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "key.pem"
    if fault == "encrypted":
        lay_down(path, Ed25519PrivateKey.generate(), b"hush")
    elif fault == "elliptic":
        lay_down(path, ec.generate_private_key(ec.SECP256R1()))
    elif fault == "short":
        lay_down(path, rsa.generate_private_key(65537, 1024))
    elif fault == "text":
        path.write_text("hush")
    done = await hqctl("", "token", "sign", "--key", str(path), "--kid", "k1", "--subject", "ops/ada")
    assert done.code == 1
    assert done.err.startswith(f"hqctl: {'--key ' if fault == 'absent' else ''}{path}: ")
    assert "hush" not in done.err
    assert len(done.err.splitlines()) == 1
