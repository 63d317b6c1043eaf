"""A complete answer goes to the socket in one piece.

uvicorn writes head and body apart: two calls of the system for each answer, two packets, and a look at every header.
"""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

_OK: Final = STATUS_LINE[200]


def write_whole(send: object, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
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
