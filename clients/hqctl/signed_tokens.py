"""Tokens as text: signed with a private key, inspected without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

LEAST_RSA_BITS = 2_048

Public = Ed25519PublicKey | RSAPublicKey


class BadToken(Exception):
    """A key or a token cannot be used; str() says why, never what is in it."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token. Times are whole seconds of Unix time."""

    subject: str
    issuer: str
    audiences: Sequence[str]
    begins_at: int
    ends_at: int
    id: str

    def as_jwt(self) -> dict[str, Any]:
        """The claims, under their names of RFC 7519."""
        return {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": self.audiences[0] if len(self.audiences) == 1 else list(self.audiences),
            "iat": self.begins_at,
            "nbf": self.begins_at,
            "exp": self.ends_at,
            "jti": self.id,
        }


def sign(claims: Claims, key: Ed25519PrivateKey | RSAPrivateKey, kid: str) -> str:
    """The token."""
    return jwt.encode(claims.as_jwt(), key, algorithm_of(key.public_key()), headers={"kid": kid})


def algorithm_of(key: Public) -> str:
    """EdDSA or RS256, depending on the kind of key."""
    return "EdDSA" if isinstance(key, Ed25519PublicKey) else "RS256"


def public_jwk(key: Public, kid: str) -> dict[str, Any]:
    """The public key as an entry of a JWKS."""
    made: dict[str, Any]
    if isinstance(key, Ed25519PublicKey):
        made = jwt.algorithms.OKPAlgorithm.to_jwk(key, as_dict=True)
    else:
        made = jwt.algorithms.RSAAlgorithm.to_jwk(key, as_dict=True)
        made.pop("key_ops", None)
    return {"kid": kid, "use": "sig", "alg": algorithm_of(key), **made}


def read_private(path: Path) -> Ed25519PrivateKey | RSAPrivateKey:
    """A private key in PEM form. Raises BadToken."""
    try:
        key = load_pem_private_key(_read_key(path), None)
    except TypeError:
        raise BadToken(f"{path}: is encrypted: give a file with the unencrypted key") from None
    except ValueError:
        raise BadToken(f"{path}: contains no PEM private key") from None
    if not isinstance(key, Ed25519PrivateKey | RSAPrivateKey):
        raise BadToken(f"{path}: {_WANTED}")
    _check(key.public_key(), path)
    return key


def read_public(path: Path) -> Public:
    """The public key of a file in PEM form that holds a private or a public one. Raises BadToken."""
    try:
        key = load_pem_public_key(_read_key(path))
    except ValueError:
        return read_private(path).public_key()
    if not isinstance(key, Ed25519PublicKey | RSAPublicKey):
        raise BadToken(f"{path}: {_WANTED}")
    _check(key, path)
    return key


def look_into(token: str) -> dict[str, Any]:
    """Header and claims of a token, unverified; never its signature. Raises BadToken."""
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise BadToken("not a token (JWT): expected three parts separated by dots") from None
    return {"header": parts["header"], "claims": parts["payload"]}


def jwks(keys: list[dict[str, Any]]) -> str:
    """A JSON Web Key Set."""
    return json.dumps({"keys": keys}, indent=2)


_WANTED = f"Ed25519 or RSA of at least {LEAST_RSA_BITS} bits expected: `openssl genpkey -algorithm ed25519`"


def _check(key: Public, path: Path) -> None:
    if isinstance(key, RSAPublicKey) and key.key_size < LEAST_RSA_BITS:
        raise BadToken(f"{path}: {_WANTED}")


def _read_key(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadToken(f"--key {path}: cannot be read: {error.strerror}: give a file that this user can read") from None
