"""The one place that turns errors into gRPC statuses, Connect errors and HTTP statuses."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import grpc
from google.protobuf import any_pb2, json_format
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from serving.calls.methods import Call
from serving.errors import Code, FailedPrecondition, InvalidRequest, OutcomeUnknown, Retry, ServiceError, Violation
from serving.protocol_errors import MethodNotAllowed, UnsupportedEncoding, UnsupportedMediaType

log = logging.getLogger(__name__)

DOMAIN: Final = "hq"

# A status travels in HTTP/2 trailers, twice: as (percent-encoded) text and in the details. gRPC peers refuse
# more than 8 KiB of them by default, so both are cut.
MAX_MESSAGE_BYTES: Final = 1024
_MAX_VIOLATIONS_BYTES: Final = 2048

_HTTP_STATUS: Final[dict[Code, int]] = {  # the mapping of the Connect protocol
    "CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "UNAUTHENTICATED": 401,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
}

_HTTP_STATUS_BY_REASON: Final = {  # where HTTP has a more telling status than Connect's mapping
    "TOO_LARGE": 413,
    "UNKNOWN_METHOD": 404,
    "METHOD_NOT_ALLOWED": 405,
    "UNKNOWN_HOST": 421,
    "GRPC_NEEDS_HTTP2": 505,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "UNSUPPORTED_ENCODING": 415,  # RFC 9110, 15.5.16; 501 would be the server's fault
    "SLOW_REQUEST": 408,
    "HEADERS_TOO_LARGE": 431,
}


_UNSURE: Final = "; if it was a write, it may or may not be stored: read to find out"


def as_service_error(error: BaseException, call: Call) -> ServiceError:
    """The error for the caller: a ServiceError as it is; anything unexpected is logged, and its details are withheld.

    Raises:
        KeyboardInterrupt, SystemExit: they do not concern the caller.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    told = _as_service_error(error, call)
    told.request_id = call.request_id
    return told


def _as_service_error(error: BaseException, call: Call) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, TimeoutError):
        return OutcomeUnknown(f"no response before the deadline{_UNSURE}")
    if isinstance(error, asyncio.CancelledError):
        return OutcomeUnknown(f"the call was aborted by a replica that is shutting down{_UNSURE}")
    log.error("call %s failed unexpectedly", call.request_id, exc_info=error)
    return ServiceError(f"internal error; see call {call.request_id} in the log")


# --- google.rpc ---------------------------------------------------------------------------------------------


def status_of(error: ServiceError) -> status_pb2.Status:
    """The error as google.rpc.Status with its details, small enough for gRPC's trailers."""
    status = status_pb2.Status(code=grpc_code(error).value[0], message=cut(str(error), MAX_MESSAGE_BYTES))
    if error.plain_details is not None:
        status.details.extend(error.plain_details)
        return status
    for detail in _details(error):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def grpc_code(error: ServiceError) -> grpc.StatusCode:
    """The gRPC status code of an error."""
    return grpc.StatusCode[error.code]


def grpc_trailers(error: ServiceError, status: status_pb2.Status) -> tuple[tuple[str, str | bytes], ...]:
    """Trailing metadata: the details, and the delay for clients that retry by themselves."""
    trailers: list[tuple[str, str | bytes]] = [("grpc-status-details-bin", status.SerializeToString())]
    if isinstance(error, Retry):
        trailers.append(("grpc-retry-pushback-ms", str(round(error.retry_delay_s * 1000))))
    if error.request_id:
        trailers.append(("x-request-id", error.request_id))
    return tuple(trailers)


def _details(error: ServiceError) -> Iterator[Message]:
    yield error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata)
    if isinstance(error, Retry):
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromMilliseconds(round(error.retry_delay_s * 1000))
        yield info
    elif isinstance(error, InvalidRequest):
        yield _bad_request(error.violations)
    elif isinstance(error, FailedPrecondition):
        yield _precondition_failure(error.reason, error.subject, str(error))
    if error.request_id:
        yield error_details_pb2.RequestInfo(request_id=error.request_id)


def _bad_request(violations: tuple[Violation, ...]) -> error_details_pb2.BadRequest:
    bad = error_details_pb2.BadRequest()
    for index, violation in enumerate(violations):
        bad.field_violations.add(
            field=cut(violation.field, 256), description=cut(violation.description, MAX_MESSAGE_BYTES)
        )
        if bad.ByteSize() > _MAX_VIOLATIONS_BYTES and index > 0:
            left = len(violations) - index
            bad.field_violations[-1].CopyFrom(
                error_details_pb2.BadRequest.FieldViolation(description=f"and {left} more")
            )
            break
    return bad


def _precondition_failure(reason: str, subject: str, text: str) -> error_details_pb2.PreconditionFailure:
    failure = error_details_pb2.PreconditionFailure()
    description = cut(text, MAX_MESSAGE_BYTES)
    failure.violations.add(type=reason, subject=cut(subject, 256), description=description)
    return failure


def cut(text: str, max_bytes: int) -> str:
    """Cut to `max_bytes` bytes of UTF-8; what cannot be encoded (lone surrogates) is replaced."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - 3].decode("utf-8", "ignore") + "…"


# --- Connect and HTTP ---------------------------------------------------------------------------------------


def http_status(error: ServiceError) -> int:
    """The HTTP status of an error: Connect's mapping, or a more telling one."""
    return _HTTP_STATUS_BY_REASON.get(error.reason) or _HTTP_STATUS[error.code]


def retry_after_s(error: ServiceError) -> int | None:
    """Value of the Retry-After header: whole seconds, at least one; None where waiting does not help."""
    return max(1, math.ceil(error.retry_delay_s)) if isinstance(error, Retry) else None


def error_headers(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """Headers that say what to do about an error."""
    delay_s = retry_after_s(error)
    if delay_s is not None:
        return [(b"retry-after", b"%d" % delay_s)]
    if error.code == "UNAUTHENTICATED":
        return [(b"www-authenticate", b"Bearer")]
    if isinstance(error, UnsupportedMediaType):
        return [(b"accept-post", error.accepted.encode())]
    if isinstance(error, UnsupportedEncoding):
        return [(b"accept-encoding", error.accepted.encode())]
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", error.allowed.encode())]
    return []


def connect_error(error: ServiceError) -> dict[str, Any]:
    """The error as the Connect protocol's JSON object: code, message, details."""
    status = status_of(error)
    code = "canceled" if error.code == "CANCELLED" else error.code.lower()
    if error.plain_details is not None:
        details = [_connect_any(detail) for detail in error.plain_details]
    else:
        details = [_connect_detail(d) for d in _details(error)]
    return {"code": code, "message": status.message, "details": details}


def connect_error_body(error: ServiceError) -> bytes:
    """Body of a failed unary call."""
    return _compact(connect_error(error))


def end_of_stream(error: ServiceError | None, trailers: Sequence[tuple[bytes, bytes]] = ()) -> bytes:
    """Payload of the last envelope of a stream."""
    told: dict[str, Any] = {} if error is None else {"error": connect_error(error)}
    if trailers:
        names = dict.fromkeys(name.decode() for name, _ in trailers)
        told["metadata"] = {
            n: [value.decode("latin-1") for name, value in trailers if name == n.encode()] for n in names
        }
    return _compact(told) if told else b"{}"


def _connect_detail(detail: Message) -> dict[str, Any]:
    return {
        "type": detail.DESCRIPTOR.full_name,
        "value": base64.b64encode(detail.SerializeToString()).rstrip(b"=").decode(),
        "debug": json_format.MessageToDict(detail),
    }


def _connect_any(detail: any_pb2.Any) -> dict[str, Any]:
    value = base64.b64encode(detail.value).rstrip(b"=").decode()
    return {"type": detail.type_url.rpartition("/")[2], "value": value}


def _compact(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
