"""The bits of ASGI that we use: types, reading a body within bounds, sending an answer, in one piece if possible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from serving import error_statuses
from serving.calls.methods import Call
from serving.encoding.envelopes import COMPRESSED, PREFIX, PREFIX_BYTES
from serving.errors import ServiceError, TooLarge, invalid
from serving.limiting.admission import Admission

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class ClientGone(Exception):
    """The client left before its request was complete; there is nobody to answer."""


def check_length(headers: Mapping[bytes, bytes], max_bytes: int) -> None:
    """Refuse a body by its announced length, before its sender is told to go on by "100 Continue".

    Raises:
        TooLarge: it is over `max_bytes`.
    """
    length = headers.get(b"content-length")
    if length is not None and int(length) > max_bytes:
        raise _too_large(max_bytes)


async def read_body(receive: Receive, admission: Admission, peer: str, max_bytes: int) -> bytes:
    """The whole body.

    Raises:
        TooLarge: it is over `max_bytes`; the rest is left unread.
        Overloaded: too much is being received already, from all or from this peer.
        ClientGone: it ended before its end.
    """
    message = await receive()
    if message["type"] == "http.request" and not message["more_body"]:  # almost always
        body: bytes = message["body"]
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        return body
    return await _read_parts(message, receive, admission, peer, max_bytes)


async def _read_parts(message: Message, receive: Receive, admission: Admission, peer: str, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    try:
        while True:
            if message["type"] != "http.request":
                raise ClientGone
            part: bytes = message["body"]
            if size_bytes + len(part) > max_bytes:
                raise _too_large(max_bytes)
            admission.hold_body(peer, len(part))
            size_bytes += len(part)
            parts.append(part)
            if not message["more_body"]:
                return b"".join(parts)
            message = await receive()
    finally:
        admission.release_body(peer, size_bytes)


async def respond(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole answer; its content-length is added."""
    if status != 304:  # it would describe the answer that the client already has
        headers.append((b"content-length", b"%d" % len(body)))
    if status == 200 and write_complete(send, headers, body):
        return
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except asyncio.CancelledError:
        return  # the client left in the middle of the answer, or we shut down


async def respond_error(send: Send, error: ServiceError, extra_headers: Headers) -> None:
    """Answer with Connect's JSON of an error and the HTTP status that belongs to it."""
    headers: Headers = [(b"content-type", b"application/json"), *error_statuses.error_headers(error), *extra_headers]
    if error.request_id and not any(name == b"x-request-id" for name, _ in extra_headers):
        headers.append((b"x-request-id", error.request_id.encode()))
    await respond(send, error_statuses.http_status(error), headers, error_statuses.connect_error_body(error))


def request_id_header(call: Call) -> tuple[bytes, bytes]:
    """The id of this call, to be sent back to a caller that named one."""
    return b"x-request-id", call.request_id.encode()


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body is over the limit of {max_bytes} bytes")


_OK: Final = STATUS_LINE[200]


def write_complete(send: object, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
    """Write a whole 200 answer to a POST, if `send` is uvicorn's own and the reader keeps up.

    Return whether it was: if not, nothing was written, and `send` must be used. `headers` must be well-formed, with the
    content-length, and hold no `connection`.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.response_started or cycle.disconnected:
        return False
    if cycle.flow.write_paused or cycle.scope["method"] != "POST":
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    lines = [_OK]
    for name, value in cycle.default_headers:
        lines += (name, b": ", value, b"\r\n")
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
    lines.append(body)
    cycle.transport.write(b"".join(lines))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def unwrap_only(body: bytes, max_bytes: int) -> tuple[bool, bytes]:
    """Whether the one message of a request is compressed, and the message.

    Raises:
        InvalidRequest: the body is not exactly one whole envelope with flags of a request.
        TooLarge: the envelope announces more than `max_bytes`.
    """
    if len(body) < PREFIX_BYTES:
        raise invalid("", f"the body has {len(body)} bytes: one enveloped message is expected, of five or more")
    flags, size_bytes = PREFIX.unpack_from(body)
    payload = body[PREFIX_BYTES:]
    if flags & ~COMPRESSED:
        raise invalid("", f"envelope flags {flags:#04x} are not valid in a request")
    if size_bytes > max_bytes:
        raise TooLarge(f"the message is over the limit of {max_bytes} bytes")
    if len(payload) < size_bytes:
        raise invalid("", f"the envelope announces {size_bytes} bytes, only {len(payload)} follow")
    if len(payload) > size_bytes:
        raise invalid("", "more than one message: this call takes one")
    return bool(flags & COMPRESSED), payload
