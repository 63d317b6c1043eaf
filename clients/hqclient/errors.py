"""Why a call failed, decoded from gRPC's status once for everybody."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped,unused-ignore]

DETAILS_KEY = "grpc-status-details-bin"
HQ_DOMAIN = "hq"

_KNOWN: dict[str, Any] = {
    message.DESCRIPTOR.full_name: message
    for message in (
        error_details_pb2.ErrorInfo,
        error_details_pb2.RetryInfo,
        error_details_pb2.BadRequest,
        error_details_pb2.PreconditionFailure,
    )
}

_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}

# A replica that shuts down also aborts writes that it had begun.
UNSURE_REASONS = frozenset({"OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "SHUTTING_DOWN"})
_TRY_LATER = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})
# gRPC has no code for "never sent": these are its words when a call found no connection. As gRPC's own retries are off
# (CHANNEL_OPTIONS), there was no other attempt.
_REFUSED: Final = re.compile(
    r"failed to connect to all addresses; last error: \w+: (?:ipv[46]:)?(\S+): "
    r"(?:Failed to connect to remote host: )?(.+)"
)
_UNRESOLVED: Final = re.compile(
    r"(?:errors resolving|DNS resolution failed for) (\S+): (?:\[.*lookup error: ?|.*: )?(.+?)\]?"
)
_NEVER_SENT: Final = ("failed to connect to all addresses", "errors resolving ", "DNS resolution failed for ")
_WITHOUT_WORD_FROM_HQ = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request or of the state it met: the field (or subject), and what is wrong with it."""

    field: str
    description: str


class HqApiError(Exception):
    """A call failed; str() is a sentence for people.

    Attributes:
        code: the gRPC status.
        message: the sentence, as the server (or gRPC) put it.
        reason: stable identifier for programs (VERSION_CONFLICT, FENCED, ...); empty if HQ itself did not answer.
        violations: faults of the request, by field, or preconditions that did not hold, by subject.
        metadata: further details for programs.
        retry_delay_s: after how many seconds HQ asks for a retry of the same call; None: it does not ask.
        from_hq: the error comes from HQ, not from gRPC or something in between.
        sent: False if the request surely never left this process.
        endpoint: address of the replica that was asked.
        earlier_try_unknown: the error is that of the last try, and an earlier try may have been stored.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        violations: Sequence[Violation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_delay_s: float | None = None,
        from_hq: bool = False,
        sent: bool = True,
        endpoint: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})
        self.retry_delay_s = retry_delay_s
        self.from_hq = from_hq
        self.sent = sent
        self.endpoint = endpoint
        self.earlier_try_unknown = False

    def __repr__(self) -> str:
        return f"HqApiError({self.code.name}, {self.message!r}, reason={self.reason!r})"

    def reword(self, message: str) -> None:
        """Replace the message."""
        self.message, self.args = message, (message,)

    @property
    def current_version(self) -> int | None:
        """The version at which the record stands, if HQ said so: read again and repeat the change."""
        text = self.metadata.get("current_version", "")
        return int(text) if text.isdecimal() else None

    @property
    def current_epoch(self) -> str:
        """The epoch that took the place of the caller's; empty if HQ did not say so."""
        return self.metadata.get("current_epoch", "")

    @property
    def nothing_stored(self) -> bool:
        """Whether the request surely changed nothing and may succeed later: safe to send again, whatever the call."""
        if self.earlier_try_unknown:
            return False
        asked_to_repeat = self.from_hq and self.code in _TRY_LATER and self.retry_delay_s is not None
        return not self.sent or (asked_to_repeat and self.reason not in UNSURE_REASONS)

    @property
    def outcome_unknown(self) -> bool:
        """Whether a write may have been stored nevertheless. Read to find out."""
        if self.earlier_try_unknown:
            return True
        if self.from_hq:
            return self.reason in UNSURE_REASONS or self.code is grpc.StatusCode.INTERNAL
        return self.sent and self.code in _WITHOUT_WORD_FROM_HQ


def not_connected(endpoint: str, message: str) -> HqApiError:
    """The error for a missing connection: nothing was sent."""
    return HqApiError(grpc.StatusCode.UNAVAILABLE, message, sent=False, endpoint=endpoint)


def connection_closed(endpoint: str) -> HqApiError:
    """The error for a connection that ended during a call, which may have been carried out."""
    return HqApiError(grpc.StatusCode.UNAVAILABLE, f"the connection to {endpoint} was closed", endpoint=endpoint)


def decode(error: grpc.aio.AioRpcError, endpoint: str = "") -> HqApiError:
    """Make an HqApiError of gRPC's error, with HQ's details. Details that cannot be read are treated as absent."""
    text = error.details() or ""
    sent = not text.startswith(_NEVER_SENT)
    words = text if sent else _connection_words(text)
    return decode_status(error.code(), words, _details_bytes(error), endpoint, sent=sent)


def _connection_words(details: str) -> str:
    """A channel's word about a connection that it could not open; `connecting.py` finds out more."""
    match = _REFUSED.fullmatch(details) or _UNRESOLVED.fullmatch(details)
    return details if match is None else f"cannot connect to {match[1]}: {match[2]}"


def decode_status(
    code: grpc.StatusCode | int, text: str, details: bytes, endpoint: str = "", *, sent: bool = True
) -> HqApiError:
    """As `decode`, for a status that did not come through gRPC's own library; `details`: grpc-status-details-bin."""
    if not isinstance(code, grpc.StatusCode):
        code = _BY_NUMBER.get(code, grpc.StatusCode.UNKNOWN)
    facts = _details(details)
    info, retry = facts.get("ErrorInfo"), facts.get("RetryInfo")
    from_hq = info is not None and info.domain == HQ_DOMAIN
    return HqApiError(
        code,
        text or code.name,
        reason=info.reason if info is not None else "",
        violations=_violations(facts),
        metadata=dict(info.metadata) if info is not None else {},
        retry_delay_s=retry.retry_delay.ToTimedelta().total_seconds() if retry is not None else None,
        from_hq=from_hq,
        sent=from_hq or sent,
        endpoint=endpoint,
    )


def _details(raw: bytes) -> dict[str, Any]:
    """The details that we know, by the names of their messages."""
    status = status_pb2.Status()
    try:
        status.ParseFromString(raw)
        return dict(_unpack_detail(packed) for packed in status.details if packed.TypeName() in _KNOWN)
    except DecodeError:
        return {}


def _details_bytes(error: grpc.aio.AioRpcError) -> bytes:
    metadata: Any = error.trailing_metadata() or ()
    return next((value for key, value in metadata if key == DETAILS_KEY and isinstance(value, bytes)), b"")


def _unpack_detail(packed: Any) -> tuple[str, Any]:
    name = packed.TypeName().removeprefix("google.rpc.")
    detail = _KNOWN[packed.TypeName()]()
    packed.Unpack(detail)
    return name, detail


def _violations(facts: Mapping[str, Any]) -> list[Violation]:
    found = []
    if "BadRequest" in facts:
        found += [Violation(v.field, v.description) for v in facts["BadRequest"].field_violations]
    if "PreconditionFailure" in facts:
        found += [Violation(v.subject, v.description) for v in facts["PreconditionFailure"].violations]
    return found
