"""Security as flags say it, for both servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from serving.auth.audit import Audit, LogSink
from serving.auth.audit_file import FileSink
from serving.auth.certificates import Certificates
from serving.auth.errors import BadSecurity
from serving.auth.gate import Gate
from serving.auth.policy import parse
from serving.auth.security import Reread, Security
from serving.auth.tickets import Demands, Tickets, parse_jwks
from serving.auth.tls import ServerTls
from serving.auth.watched import WatchedFiles
from serving.clock import Clock
from serving.flags import Duration, Flags, is_loopback, together

F = TypeVar("F", bound=Callable[..., Any])

_FILES: Final = {
    "--tls-cert": "Serve TLS with this certificate chain (PEM). All these files are reloaded when they change.",
    "--tls-key": "Its private key (PEM).",
    "--client-ca": "Accept client certificates of this CA (PEM) as identities; --grpc-mtls requires them.",
    "--jwks": "Accept tokens (JWT) signed by one of these public keys.",
    "--policy": "Policy: which identity has which role (YAML).",
    "--audit-log": "Write a JSON line for each denied call and each write; default: to the log.",
}


def flags(made: Flags) -> Callable[[F], F]:
    """All flags of security."""
    files = [made.option(name, default="", metavar="FILE", help=text) for name, text in _FILES.items()]
    address = "Second gRPC address, which requires client certificates (--grpc then does not); port 0: a free one."
    return together(
        *files,
        made.option("--grpc-mtls", default="", metavar="HOST:PORT", help=address),
        made.option("--trust-domain", default="", help="Trust domain of the SPIFFE ids in client certificates."),
        made.option("--audience", default="hq", help="Required audience of tokens (aud)."),
        made.option("--issuer", default="", help="Required issuer of tokens (iss)."),
        made.option(
            "--clock-skew", type=Duration(), default="30s", help="Allowed clock skew of token issuers (exp and nbf)."
        ),
        made.option(
            "--max-ticket-life", type=Duration(), default="24h", help="Reject tokens that are valid for longer."
        ),
    )


def check_exposure(given: Mapping[str, Any]) -> None:
    """Raises BadSecurity: an address can be reached by others, and they could read along or call unasked."""
    if given["insecure"]:
        return
    is_safe = bool(given.get("tls_cert")) and bool(given.get("jwks") or given.get("client_ca"))
    for flag in ("grpc", "http", "agents", "worker_pages"):
        if given.get(flag) and not is_loopback(given[flag]) and not is_safe:
            raise BadSecurity(
                f"{_flag(flag)} {given[flag]} is reachable from other machines: give --tls-cert and --tls-key, and "
                "--jwks or --client-ca with --policy; or serve on 127.0.0.1; or give --insecure if the network itself "
                "is protected"
            )


def security_of(given: Mapping[str, Any], clock: Clock, cluster: str | None) -> Security | None:
    """What the flags say; None: neither TLS nor callers' identities.

    `cluster` None: it is a front. Callers need tickets there, which it passes on; a certificate it could not.

    Raises:
        BadSecurity: naming the flag.
    """
    _check(given)
    if cluster is None and given["policy"] and not given["jwks"]:
        raise BadSecurity(
            "--policy needs --jwks at a federation gateway: it forwards tokens, and cannot forward certificates"
        )
    tls = None
    if given["tls_cert"]:
        client_ca = Path(given["client_ca"]) if given["client_ca"] else None
        tls = ServerTls(Path(given["tls_cert"]), Path(given["tls_key"]), client_ca, clock)
    audit = Audit(FileSink(Path(given["audit_log"])) if given["audit_log"] else LogSink(), clock)
    if not given["policy"]:
        return Security(None, tls, audit, []) if tls else None
    try:
        gate, files = _gate(given, audit, clock, cluster)
    except BadSecurity:
        audit.close()
        raise
    return Security(gate, tls, audit, files)


def _gate(given: Mapping[str, Any], audit: Audit, clock: Clock, cluster: str | None) -> tuple[Gate, list[Reread]]:
    policy = WatchedFiles("policy", (Path(given["policy"]),), lambda contents: parse(contents[0]))
    accepts_certificates = given["client_ca"] and cluster is not None
    certificates = Certificates(given["trust_domain"], clock) if accepts_certificates else None
    if not given["jwks"]:
        gate = Gate(policy.current, None, certificates, audit, clock, cluster)
        return gate, [(policy, lambda: gate.use(policy.current))]
    keys = WatchedFiles("jwks", (Path(given["jwks"]),), parse_jwks)
    demands = Demands(given["audience"], given["issuer"], given["clock_skew"], given["max_ticket_life"])
    tickets = Tickets(keys.current, demands, clock)
    gate = Gate(policy.current, tickets, certificates, audit, clock, cluster)
    return gate, [(policy, lambda: gate.use(policy.current)), (keys, lambda: tickets.use(keys.current))]


_NEEDS: Final = (
    ("tls_cert", ("tls_key",)),
    ("tls_key", ("tls_cert",)),
    ("client_ca", ("tls_cert", "trust_domain", "policy")),
    ("trust_domain", ("client_ca",)),
    ("grpc_mtls", ("client_ca",)),
    ("jwks", ("issuer", "audience", "policy")),
    ("issuer", ("jwks",)),
    ("audit_log", ("policy",)),
)


def _check(given: Mapping[str, Any]) -> None:
    for name, needed in _NEEDS:
        missing = [other for other in needed if given[name] and not given[other]]
        if missing:
            raise BadSecurity(f"{_flag(name)} needs {' and '.join(map(_flag, missing))}")
    if given["policy"] and not given["jwks"] and not given["client_ca"]:
        raise BadSecurity("--policy has no effect without authentication: give --jwks or --client-ca")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
