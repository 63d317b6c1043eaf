"""The key of tokens, its public half for servers, and tokens of people and of programs without a certificate."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hq.installation.authority import BadKeyFile
from hq.installation.files import write_atomically, write_once

ISSUER: Final = "hqctl"  # as `hqctl token sign` has it, with the same key
KID: Final = "k1"
VALID: Final = timedelta(hours=24)  # servers refuse more (--max-token-ttl)
DUE: Final = timedelta(hours=16)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token that somebody needs, and its file."""

    path: Path
    subject: str
    audiences: Sequence[str]


class TokenSigner:
    """Signs with `token.key` of the folder."""

    def __init__(self, folder: Path) -> None:
        """Load the key; make it if there is none. Raises BadKeyFile."""
        path = folder / "token.key"
        if not path.exists():
            made = Ed25519PrivateKey.generate()
            write_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        try:
            key = load_pem_private_key(path.read_bytes(), None)
        except (ValueError, TypeError):
            raise BadKeyFile(f"{path}: is not an unencrypted private key in PEM form: take it from a backup") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise BadKeyFile(f"{path}: is not an Ed25519 key: move it away to have another one made")
        self._key = key

    def jwks(self) -> bytes:
        """The public key, for the servers' --jwks."""
        public = jwt.algorithms.OKPAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{"kid": KID, "use": "sig", "alg": "EdDSA", **public}]}, indent=2).encode() + b"\n"

    def renew(self, request: TokenRequest, now: datetime, due: timedelta) -> bool:
        """Write a token unless there is one that holds for longer than `due`; return whether it was written."""
        if request.path.exists() and self._is_good(request, now + due):
            return False
        claims = {
            "iss": ISSUER,
            "sub": request.subject,
            "aud": list(request.audiences),
            "iat": now,
            "nbf": now,
            "exp": now + VALID,
            "jti": secrets.token_hex(8),
        }
        signed = jwt.encode(claims, self._key, "EdDSA", headers={"kid": KID})
        return write_atomically(request.path, signed.encode() + b"\n")

    def _is_good(self, request: TokenRequest, until: datetime) -> bool:
        try:
            held = jwt.decode(
                request.path.read_text().strip(),
                self._key.public_key(),
                ["EdDSA"],
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },  # `until` decides, not this machine's clock
                audience=request.audiences,
            )
        except jwt.PyJWTError:
            return False
        is_same = held["sub"] == request.subject and held["aud"] == list(request.audiences)
        return bool(is_same and held["exp"] > until.timestamp())
