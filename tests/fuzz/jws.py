"""Tokens put together by hand, and values that their members must not have."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from tests.fuzz.callers import KEEPER
from tests.support.token_issuer import AUDIENCE, ISSUER

HOUR_S: Final = 3_600
LEFT_OUT: Final = object()

_NO_TEXT: Final[tuple[Any, ...]] = (LEFT_OUT, "", None, 5, [], {}, True)
_NO_TIME: Final[tuple[Any, ...]] = ("soon", None, [], True, 10**400, 1e308, float("nan"), float("inf"))

ALGORITHMS: Final[tuple[Any, ...]] = (
    *_NO_TEXT,
    *("none", "None", ["EdDSA"], "eddsa", "EdDSA\0", "HS256", "ES256", "PS256"),
)
KEY_IDS: Final[tuple[Any, ...]] = (*_NO_TEXT, "x", "k" * 7_000, "\ud800")
# What a claim must not be: values, or functions of nothing where they depend on the time.
WRONG: Final[Mapping[str, tuple[Any, ...]]] = {
    "aud": (*_NO_TEXT, "mail", ["mail"], AUDIENCE.upper(), AUDIENCE + " ", [AUDIENCE, 5], [[AUDIENCE]]),
    "iss": (*_NO_TEXT, "elsewhere", [ISSUER], ISSUER + "/", ISSUER[:-1], ISSUER.upper()),
    "sub": (*_NO_TEXT, "k" * 3_000, KEEPER + "\n", KEEPER + "\0", KEEPER.upper(), KEEPER + " ", "*"),
    "exp": (
        *(*_NO_TIME, LEFT_OUT, -1, 0, -1.5, -(10**400), float("-inf")),
        *(lambda: str(round(time.time()) + 60), lambda: time.time() - HOUR_S, lambda: time.time() + 10**6),
    ),
    "nbf": (*_NO_TIME, lambda: time.time() + HOUR_S),
}


def compact(header: Any, claims: Any, key: Any) -> bytes:
    """A token of these, which are JSON or, as bytes, anything, signed by a key as its kind signs."""
    signing = signed(header, claims)
    if isinstance(key, RSAPrivateKey):
        return signing + b"." + b64(key.sign(signing, padding.PKCS1v15(), hashes.SHA256()))
    return signing + b"." + b64(key.sign(signing))


def signed(header: Any, claims: Any) -> bytes:
    """What of it is signed."""
    parts = (part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims))
    return b".".join(map(b64, parts))


def b64(data: bytes) -> bytes:
    """Encode a part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def unb64(data: bytes) -> bytes:
    """Decode a part of a token."""
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
