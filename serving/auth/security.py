"""Everything about the security of one process: as its flags say, and kept up to date with its files."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from serving.auth.audiences import COMMON
from serving.auth.audit import Audit, AuditLine, LogSink
from serving.auth.audit_file import FileSink
from serving.auth.bearer_tokens import Demands, Tokens, parse_jwks
from serving.auth.certificates import Certificates
from serving.auth.gate import DENIALS, Authenticator
from serving.auth.policy import parse
from serving.auth.revocations import parse_revoked
from serving.auth.tls import ServerTls
from serving.auth.watched_files import BadSecurity, WatchedFiles
from serving.clock import Clock
from serving.flags import OWN_ADDRESS, Duration, Flags, InputFile, together
from serving.sockets import is_loopback
from serving.telemetry.metrics import Declared

_REREAD_S: Final = 1.0
_START: Final = AuditLine(
    "", "", "start", "", "allow", "start", "OK", 0, ""
)  # also shows whether the log can be written
_MARK_EVERY_S: Final = 300.0

Reloading = tuple[WatchedFiles[Any], Callable[[], None]]
"""Files, and what to do when their contents have changed."""


class Security:
    """The gate that calls pass, TLS of the transports, and the files that both are made from.

    Attributes:
        gate: None: without authentication.
        tls: None: plain text.
    """

    def __init__(self, gate: Authenticator | None, tls: ServerTls | None, audit: Audit, files: list[Reloading]) -> None:
        self.gate, self.tls, self.audit = gate, tls, audit
        self._files = [*((file, _nothing) for file in (tls.files if tls else ())), *files]

    async def keep(self) -> None:
        """Follow the files and the clock until cancelled."""
        while True:
            await asyncio.sleep(_REREAD_S)
            self.refresh()

    def follow_authorities(self, gate: Authenticator, bundle: WatchedFiles[bytes]) -> None:
        """Let the gate know of other CAs in the bundle of clients' certificates."""
        self._files = [
            (file, (lambda: gate.use_authorities(bundle.current)) if file is bundle else use)
            for file, use in self._files
        ]

    def close(self) -> None:
        """Write what is left of the audit log: the process ends."""
        if self.gate is not None:
            self.gate.denials.tell_rest(all_of_it=True)
        self.audit.close()

    def refresh(self) -> None:
        """Read again what has changed; end streams whose time is over."""
        for file, use in self._files:
            if file.reread():
                use()
        if self.gate is not None:
            self.gate.end_leases()
            self.gate.denials.tell_rest()
        self.audit.pay()
        self.audit.tell(_MARK_EVERY_S)

    def note(self) -> str:
        """Return a warning for operators, in a sentence; empty: none. Anybody may read it: the log has the reasons."""
        faults = [
            f"--{file.name}: the changed file could not be loaded, see the log" for file, _ in self._files if file.fault
        ]
        if self.audit.fault:
            faults.append("the audit log cannot be written, writes and orders are refused, see the log")
        return "; ".join(faults)

    def file_faults(self) -> dict[tuple[str, ...], float]:
        """By flag: 1 if the file's current contents are not in force."""
        return {(file.name,): float(bool(file.fault)) for file, _ in self._files}

    def denial_counts(self) -> dict[tuple[str, ...], float]:
        """Calls that were denied, by the code that they got."""
        counted = self.gate.denied if self.gate is not None else {}
        return {(code,): counted.get(code, 0) for code in DENIALS}

    def certificate_expires_at(self) -> float:
        """Unix time in seconds; NaN: there is no TLS."""
        return math.nan if self.tls is None else self.tls.expires_at


def _nothing() -> None:
    """Do nothing about changed files: TLS asks for their contents at each handshake."""


_FILE_TEXT: Final = "1 if a changed security file could not be loaded and the previous contents remain in force."
METRICS: Final[tuple[Declared[Security], ...]] = (
    Declared(
        "counter",
        "hq_denied_total",
        "Calls rejected by authentication or authorization, by code.",
        Security.denial_counts,
        ("code",),
    ),
    Declared("gauge", "hq_security_file_fault", _FILE_TEXT, Security.file_faults, ("file",)),
    Declared(
        "gauge",
        "hq_tls_certificate_expires_seconds",
        "When the server certificate in use expires, Unix time; NaN without TLS.",
        Security.certificate_expires_at,
    ),
    Declared("counter", "hq_audit_lines_total", "Lines written to the audit log.", lambda s: s.audit.lines),
    Declared(
        "counter", "hq_audit_lines_lost_total", "Audit log lines that could not be written.", lambda s: s.audit.lost
    ),
    Declared(
        "gauge",
        "hq_audit_sequence",
        "Sequence number of the last line of the audit log, kept across restarts; for `hq audit verify --expect`.",
        lambda s: s.audit.chain.sequence,
    ),
    Declared("gauge", "hq_audit_fault", "1 if the audit log cannot be written.", lambda s: float(bool(s.audit.fault))),
)


F = TypeVar("F", bound=Callable[..., Any])

_FILES: Final = {
    "--tls-cert": "Serve TLS with this certificate chain (PEM). All these files are reloaded when they change.",
    "--tls-key": "Its private key (PEM).",
    "--client-ca": "Accept client certificates of this CA (PEM) as identities.",
    "--jwks": "Accept tokens (JWT) signed by one of these public keys.",
    "--policy": "Policy: which identity has which role (YAML).",
    "--revoked": "Refuse the tokens, certificates and identities in this file (YAML: tokens, serials, subjects).",
    "--audit-log": "Write a JSON line for each denied call and each write; default: to the log.",
}
COMMON_TEXT: Final = (
    f"Also accept tokens for {COMMON}, the audience of all servers up to 0.1.0 (will be removed in the next release)."
)
_CHECKED_ONLY: Final = (
    "Refuse client certificates that this CA (PEM) did not sign. They identify nobody here: callers need tokens."
)


def flags(made: Flags, audience: str, *, serves_grpc: bool = True, forwards: bool = False) -> Callable[[F], F]:
    """All flags of security.

    Args:
        audience: the server's own name, which tokens must list.
        serves_grpc: there may be an address for callers with certificates.
        forwards: as `security_of` takes it.
    """
    option = made.under("Security").option
    texts = {**_FILES, "--client-ca": _CHECKED_ONLY} if forwards else _FILES
    files = [
        option(name, type=None if name == "--audit-log" else InputFile(), default="", metavar="FILE", help=text)
        for name, text in texts.items()
    ]
    address = (
        "Second gRPC address, which requires client certificates; at the others they are optional. Port 0: a free one."
    )
    mtls = (
        [made.under("Listening").option("--grpc-mtls", type=OWN_ADDRESS, default="", metavar="HOST:PORT", help=address)]
        if serves_grpc
        else []
    )
    return together(
        *files,
        *mtls,
        option("--trust-domain", default="", help="Trust domain of the SPIFFE ids in client certificates."),
        option("--audience", default=audience, help="Name of this server, which a token must list (aud)."),
        *([] if audience == COMMON else [option("--common-audience", is_flag=True, help=COMMON_TEXT)]),
        option("--issuer", default="", help="Required issuer of tokens (iss)."),
        option(
            "--clock-skew", type=Duration(), default="30s", help="Allowed clock skew of token issuers (exp and nbf)."
        ),
        option("--max-token-ttl", type=Duration(), default="24h", help="Reject tokens that are valid for longer."),
    )


def check_exposure(given: Mapping[str, Any], *, forwards: bool = False) -> None:
    """Raises BadSecurity: others could reach an address and eavesdrop, or call unauthorized."""
    named = {flag: given[flag] for flag in ("grpc", "http", "agents", "worker_pages") if given.get(flag)}
    if given["insecure"] or (given.get("tls_cert") and (given.get("jwks") or given.get("client_ca"))):
        return
    identities = "--jwks with --policy" if forwards else "--jwks or --client-ca with --policy"
    ways = f"give --tls-cert and --tls-key, and {identities}; or " if "tls_cert" in given else ""
    for flag, address in named.items():
        if not is_loopback(address):
            raise BadSecurity(
                f"{_flag(flag)} {address} is reachable from other machines: {ways}serve on 127.0.0.1; or give "
                "--insecure if the network itself is protected"
            )


def security_of(
    given: Mapping[str, Any],
    clock: Clock,
    cluster: str | None,
    denied_by_state: Collection[str] = (),
    *,
    forwards: bool = False,
) -> Security | None:
    """Return the security that the flags ask for; None: neither TLS nor callers' identities.

    `cluster`, `denied_by_state`: as the gate takes them.
    `forwards`: the server is a federation gateway. Its callers need tokens, since certificates cannot be forwarded.

    Raises:
        BadSecurity: naming the flag.
    """
    _check(given)
    if forwards and given["policy"] and not given["jwks"]:
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
    certificates = None
    if tls is not None and tls.client_ca is not None and not forwards:
        certificates = Certificates(given["trust_domain"], clock, tls.client_ca.current)
    try:
        gate, files = _gate(given, certificates, audit, clock, cluster, denied_by_state)
    except BadSecurity:
        audit.close()
        raise
    audit.record(_START)
    made = Security(gate, tls, audit, files)
    if certificates is not None and tls is not None and tls.client_ca is not None:
        made.follow_authorities(gate, tls.client_ca)
    return made


def _gate(
    given: Mapping[str, Any],
    certificates: Certificates | None,
    audit: Audit,
    clock: Clock,
    cluster: str | None,
    denied_by_state: Collection[str],
) -> tuple[Authenticator, list[Reloading]]:
    policy = WatchedFiles("policy", (Path(given["policy"]),), lambda contents: parse(contents[0]))
    tokens, files = None, list[Reloading]()
    if given["jwks"]:
        keys = WatchedFiles("jwks", (Path(given["jwks"]),), parse_jwks)
        common = bool(given.get("common_audience"))
        demands = Demands(given["audience"], given["issuer"], given["clock_skew"], given["max_token_ttl"], common)
        tokens = Tokens(keys.current, demands, clock)
        files.append((keys, lambda: gate.use_keys(keys.current)))
    gate = Authenticator(policy.current, tokens, certificates, audit, clock, cluster, denied_by_state)
    files.append((policy, lambda: gate.use(policy.current)))
    if given.get("revoked"):
        revoked = WatchedFiles("revoked", (Path(given["revoked"]),), lambda contents: parse_revoked(contents[0]))
        gate.use_revoked(revoked.current)
        files.append((revoked, lambda: gate.use_revoked(revoked.current)))
    return gate, files


_NEEDS: Final = (
    ("tls_cert", ("tls_key",)),
    ("tls_key", ("tls_cert",)),
    ("client_ca", ("tls_cert", "trust_domain", "policy")),
    ("trust_domain", ("client_ca",)),
    ("grpc_mtls", ("client_ca",)),
    ("jwks", ("issuer", "audience", "policy")),
    ("issuer", ("jwks",)),
    ("audit_log", ("policy",)),
    ("revoked", ("policy",)),
)


def _check(given: Mapping[str, Any]) -> None:
    for name, needed in _NEEDS:
        missing = [other for other in needed if given.get(name) and not given[other]]
        if missing:
            raise BadSecurity(f"{_flag(name)} needs {' and '.join(map(_flag, missing))}")
    if given["policy"] and not given["jwks"] and not given["client_ca"]:
        raise BadSecurity("--policy has no effect without authentication: give --jwks or --client-ca")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
