"""The files that a secured server is started with, and who is who in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving.auth.security import Security
from serving.auth.settings import security_of
from serving.clock import Clock, SystemClock
from tests.support.certificates import Authority, Certificate
from tests.support.tickets import AUDIENCE, ISSUER, Issuer

TRUST_DOMAIN = "hq.test"

POLICY = """
roles:
  reader:
    - identities: ["reader/*", "spiffe://hq.test/front"]
    - identities: [web-reader]
      services: [web]
  agent:
    - identities: ["agent/{node}", "spiffe://hq.test/agent/{node}"]
  uploader:
    - identities: [web-uploader]
      services: [web]
    - identities: [mail-uploader]
      services: [mail]
  scheduler:
    - identities: [scheduler]
  operator:
    - identities: [operator]
    - identities: [rack-operator]
      nodes: ["rack1-*"]
  admin:
    - identities: [admin]
"""


@dataclass(slots=True)
class Secured:
    """Files in a directory: CA, server's certificate, issuer's keys, policy, audit log."""

    directory: Path
    authority: Authority = field(init=False)
    server: Certificate = field(init=False)
    issuer: Issuer = field(init=False)
    policy: Path = field(init=False)
    audit: Path = field(init=False)

    def __post_init__(self) -> None:
        self.authority = Authority(self.directory / "tls")
        self.server = self.authority.issue("server")
        self.issuer = Issuer(self.directory / "issuer")
        self.policy = self.directory / "policy.yaml"
        self.policy.write_text(POLICY)
        self.audit = self.directory / "audit.jsonl"

    def given(self, **other: Any) -> dict[str, Any]:
        """The flags as click hands them over: TLS and tickets on both transports, no client certificates."""
        return {
            "tls_cert": str(self.server.cert),
            "tls_key": str(self.server.key),
            "client_ca": "",
            "grpc_mtls": "",
            "trust_domain": "",
            "jwks": str(self.issuer.jwks),
            "audience": AUDIENCE,
            "issuer": ISSUER,
            "clock_skew": 30.0,
            "policy": str(self.policy),
            "audit_log": str(self.audit),
            "insecure": False,
            **other,
        }

    def with_certificates(self, **other: Any) -> dict[str, Any]:
        """The same, and callers over gRPC may show certificates on an address of its own."""
        ca = str(self.authority.cert)
        return self.given(client_ca=ca, trust_domain=TRUST_DOMAIN, grpc_mtls="127.0.0.1:0", **other)

    def security(self, clock: Clock | None = None, cluster: str = "test", **other: Any) -> Security:
        """What a server makes of them."""
        made = security_of(self.given(**other), clock or SystemClock(), cluster)
        assert made is not None
        return made

    def flags(self, given: dict[str, Any]) -> list[str]:
        """The same for a command line."""
        words = {k: f"{v:g}s" if k == "clock_skew" else v for k, v in given.items() if v and k != "insecure"}
        return [part for k, v in words.items() for part in (f"--{k.replace('_', '-')}", str(v))]
