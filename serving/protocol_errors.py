"""Errors between the two ends of a connection; `serving/error_statuses.py` maps their reasons to statuses."""

from __future__ import annotations

from serving.errors import Retry, ServiceError


class UnsupportedMediaType(ServiceError):
    """The body is in a format that this call does not read. The code is what protocols make of 415 (decision 211)."""

    code = "UNKNOWN"
    reason = "UNSUPPORTED_MEDIA_TYPE"
    ours = False

    def __init__(self, sent: str, accepted: str) -> None:
        what = f"content-type {sent[:100]!r} is not one of" if sent else "there is no content-type: name one of"
        super().__init__(f"{what} {accepted}")
        self.accepted = accepted


class UnsupportedEncoding(ServiceError):
    """The body is compressed in a way that we do not read."""

    code = "UNIMPLEMENTED"
    reason = "UNSUPPORTED_ENCODING"
    ours = False

    accepted = "gzip, identity"

    def __init__(self, sent: str) -> None:
        super().__init__(f"encoding {sent[:100]!r} is not one of {self.accepted}")


class GrpcNeedsHttp2(ServiceError):
    """A call over gRPC came over HTTP/1.1, where no trailers could carry its status."""

    code = "UNIMPLEMENTED"
    reason = "GRPC_NEEDS_HTTP2"
    ours = False

    def __init__(self) -> None:
        super().__init__(
            "gRPC needs HTTP/2, and this request came over HTTP/1.1: connect over HTTP/2 (with TLS by ALPN, in plain "
            "text by prior knowledge), let the proxy in front pass HTTP/2 on (nginx: grpc_pass), or use gRPC-Web or "
            "Connect (application/json), which work over HTTP/1.1"
        )


class MethodNotAllowed(ServiceError):
    """There is such a path, but not with this HTTP method. The code is what protocols make of the HTTP status."""

    code = "UNKNOWN"
    reason = "METHOD_NOT_ALLOWED"
    ours = False

    def __init__(self, sent: str, allowed: str) -> None:
        super().__init__(f"{sent[:20]} is not allowed here: use {allowed}")
        self.allowed = allowed


class MalformedHttp(ServiceError):
    """The bytes are not HTTP, or two readers could take them for different requests."""

    code = "INVALID_ARGUMENT"
    reason = "MALFORMED_HTTP"
    ours = False
    limit = "malformed_http"


class UnknownHost(ServiceError):
    """The request is for a host of another name: a page in a browser may take us for its own server."""

    code = "PERMISSION_DENIED"
    reason = "UNKNOWN_HOST"
    ours = False

    def __init__(self, authority: str) -> None:
        host = authority[:100].partition(":")[0]
        super().__init__(
            f"this server does not answer as {authority[:100]!r}: use its IP address, or start it with "
            f"--allowed-host {host} (any name may be sent over HTTP/2, TLS, or with authentication)"
        )


class WrongNumberOfMessages(ServiceError):
    """A call that takes one message was sent none, or more."""

    code = "UNIMPLEMENTED"
    reason = "WRONG_NUMBER_OF_MESSAGES"
    ours = False


class UnexpectedCompression(ServiceError):
    """A message says that it is compressed, but the headers do not say how."""

    code = "INTERNAL"
    reason = "UNEXPECTED_COMPRESSION"
    ours = False


class SlowRequest(ServiceError):
    """The request did not arrive in time."""

    code = "DEADLINE_EXCEEDED"
    reason = "SLOW_REQUEST"
    ours = False
    limit = "slow_request_s"

    def __init__(self, patience_s: float) -> None:
        super().__init__(f"the request did not arrive within {patience_s:g} s")


class HeadersTooLarge(ServiceError):
    """The headers are over the limit."""

    code = "RESOURCE_EXHAUSTED"
    reason = "HEADERS_TOO_LARGE"
    ours = False
    limit = "max_header_bytes"

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the headers are over the limit of {max_bytes} bytes")


class TooManyConnections(Retry):
    """There are as many connections as allowed."""

    reason = "TOO_MANY_CONNECTIONS"

    def __init__(self, limit: str) -> None:
        super().__init__("too many connections: retry later, or use another replica", limit=limit)
