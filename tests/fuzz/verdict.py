"""Whether an answer is one that was designed for what was asked: refusals of the server's own need a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HANG_S: Final = 60.0
_OUR_FAULT: Final = {"internal", "unknown", "data_loss"}
# What whoever is not let in may be told; limits, paths and deadlines are looked at before anybody asks who calls.
_REFUSALS: Final = {
    *("unauthenticated", "permission_denied"),
    *("resource_exhausted", "deadline_exceeded", "unimplemented", "cancelled"),
}
_ALSO_OVER_HTTP: Final = {"invalid_argument", "unknown", ""}  # media types, timeouts, framing; hung up on
_UNKNOWN_FORMS: Final = (405, 415)  # Connect makes `unknown` of these statuses, whoever is at fault
_BY_PROTOCOL: Final = {"UNEXPECTED_COMPRESSION"}  # `internal`, as gRPC has it, though it is the caller's fault
_AMBIGUOUS: Final = "MALFORMED_HTTP"  # several tokens, and nobody knows which of them counts
_END_OF_STREAM: Final = b"\2"


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request decides which answers to it are right.

    Attributes:
        words: what it was, for the report.
        method: of the call; empty: a page.
        is_spoiled: its head is no proper HTTP, or it is cut short; the path need not be that of the method.
        has_deadline: its caller said how long it waits.
        names_version: it asks for a version that may be yet to come.
    """

    words: str
    method: str = ""
    is_spoiled: bool = False
    has_deadline: bool = False
    names_version: bool = False


@dataclass(frozen=True, slots=True)
class Got:
    """An answer.

    Attributes:
        transport: grpc or http.
        code: Connect's word, also at the end of a stream; empty: no error.
        reason: of its ErrorInfo.
        status: of HTTP; 0: hung up on, or gRPC.
        body: what was told, all messages of a stream together.
    """

    transport: str
    code: str
    reason: str = ""
    status: int = 0
    body: bytes = b""

    @property
    def outcome(self) -> str:
        """The outcome under which it is counted."""
        if self.transport == "grpc":
            return self.code or "ok"
        return str(self.status) if self.status else "hung up on"

    @property
    def is_of_the_server(self) -> bool:
        """A refusal that says the server's side is at fault, or not there: 5xx, or a code that Connect maps to one."""
        return self.status >= 500 or self.code in {*_OUR_FAULT, "unavailable", "unimplemented", "deadline_exceeded"}


def fault(asked: Asked, got: Got) -> str:
    """Why this is no answer to it; empty: it is one. A refusal that is the server's must have been asked for."""
    if (got.code == "unknown" and got.status in _UNKNOWN_FORMS) or got.reason in _BY_PROTOCOL:
        return ""
    if got.code in _OUR_FAULT or got.status == 500:
        return "a fault of the server"
    if got.transport == "http" and not got.status:
        return "" if asked.is_spoiled else "hung up on without a word"
    if not got.is_of_the_server:
        return ""
    return "" if _was_asked_for(asked, got) else f"{got.outcome} ({got.reason or 'no reason'}) without need"


def _was_asked_for(asked: Asked, got: Got) -> bool:
    if got.code == "deadline_exceeded":  # 408: half a request
        return asked.has_deadline or (asked.is_spoiled and got.status == 408)
    if got.code == "unimplemented":  # over HTTP it is 404, 405 or 415
        return asked.is_spoiled and got.status < 500
    if not got.code:
        return got.status == 503 and asked.names_version and not asked.method  # /readyz?fresh=
    return got.code == "unavailable" and got.reason == "BEHIND_VERSION" and asked.names_version


def is_kept_out(got: Got) -> bool:
    """Whether nothing was done and nothing told."""
    if got.transport == "grpc":
        return (got.code in _REFUSALS or got.reason == _AMBIGUOUS) and not got.body
    if got.status == 200:  # a stream that begins with its end
        return got.code in _REFUSALS | {"invalid_argument"} and got.body[:1] == _END_OF_STREAM
    return got.code in _REFUSALS | _ALSO_OVER_HTTP
