"""An issuer of tokens for tests: it signs them, and lays down its public keys as a JWKS file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from tests.support import canary

AUDIENCE, ISSUER = "hq", "https://issuer.example"
AUDIENCES = ("hq", "federated", "cms", "nanny", "walle", "console", "gateway")  # of all servers


class Issuer:
    """One key of Ed25519, or of RSA.

    Attributes:
        jwks: the file.
    """

    def __init__(self, directory: Path, kid: str = "key-1", *, use_rsa: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.kid, self.jwks = kid, directory / "jwks.json"
        self.algorithm = "RS256" if use_rsa else "EdDSA"
        self.key: Any = rsa.generate_private_key(65537, 2048) if use_rsa else Ed25519PrivateKey.generate()
        self.publish(self)

    def public(self) -> dict[str, Any]:
        """Its JSON Web Key."""
        encode = RSAAlgorithm.to_jwk if self.algorithm == "RS256" else OKPAlgorithm.to_jwk
        return {**json.loads(encode(self.key.public_key())), "kid": self.kid, "use": "sig"}

    def publish(self, *issuers: Issuer) -> None:
        """Lay down the keys of these, instead of what was there."""
        self.jwks.write_text(json.dumps({"keys": [one.public() for one in issuers]}))

    def token(self, subject: str, *, good_for_s: float = 600.0, **claims: Any) -> str:
        """A signed token. A claim given as None is left out; `kid` and `algorithm` go into the header."""
        header = {"kid": claims.pop("kid", self.kid)}
        algorithm = claims.pop("algorithm", self.algorithm)
        key = claims.pop("key", self.key)
        said = {"sub": subject, "aud": list(AUDIENCES), "iss": ISSUER, "exp": time.time() + good_for_s, **claims}
        payload = {name: value for name, value in said.items() if value is not None}
        made = jwt.encode(payload, key, algorithm=algorithm, headers={k: v for k, v in header.items() if v})
        if signature := made.rpartition(".")[2]:
            canary.keep(signature)
        return made


def bearer(token: str) -> tuple[str, str]:
    """The metadata entry, or header, that brings it."""
    return "authorization", f"Bearer {token}"
