"""Which files hold a client's credentials, as flags or the environment name them. Importing this needs no gRPC."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields


class BadCredentials(Exception):
    """A file of credentials cannot be used; str() says which and why, never what is in it."""


@dataclass(frozen=True, slots=True)
class CredentialFiles:
    """Paths of files; empty: none.

    Attributes:
        ca: certificates of authorities that the servers' certificates must come from; makes connections TLS.
        cert: the caller's own certificate chain; makes connections TLS.
        key: the key that belongs to `cert`.
        token_file: a signed token.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    token_file: str = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, prefix: str = "HQ_") -> CredentialFiles:
        """HQ_CA, HQ_CERT, HQ_KEY, HQ_TOKEN_FILE."""
        return cls(**{field.name: environ.get(f"{prefix}{field.name.upper()}", "") for field in fields(cls)})

    def over(self, other: CredentialFiles) -> CredentialFiles:
        """Return these files, with the other's where none is set; a certificate and its key stay together."""
        own = self if self.cert or self.key else other
        return CredentialFiles(self.ca or other.ca, own.cert, own.key, self.token_file or other.token_file)

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return bool(self.ca or self.cert)
