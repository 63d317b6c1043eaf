"""The call that the running task serves, for code that logs, stores or calls on its behalf.

A task of its own serves each call, so what is set stays with it and with the tasks that it makes.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final

from serving.calls.methods import Call

CURRENT: Final[ContextVar[Call | None]] = ContextVar("call", default=None)
OWN_TRACE: Final[ContextVar[str]] = ContextVar("trace", default="")  # of the span made for the call, if any was

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_MOST: Final = 256  # characters that are looked at


def request_id() -> str:
    """Return the id of the current call, made up if its caller sent none. Empty outside of calls."""
    call = CURRENT.get()
    return call.request_id if call is not None else ""


def traceparent(call: Call | None = None) -> str:
    """The W3C trace context: that of our own span, or as the caller sent it; empty if there is no well-formed one."""
    if own := OWN_TRACE.get():
        return own
    call = call or CURRENT.get()
    text = call.header("traceparent")[:_MOST] if call is not None else ""
    return text if text.isascii() and text.isprintable() and _TRACEPARENT.fullmatch(text) else ""


def trace_id() -> str:
    """The trace that the current call belongs to; empty: none."""
    match = _TRACEPARENT.fullmatch(traceparent())
    return match[1] if match else ""


def forwarded_metadata(call: Call | None = None) -> tuple[tuple[str, str], ...]:
    """Metadata for calls made on behalf of `call`; by default, of the current one."""
    call = call or CURRENT.get()
    if call is None:
        return ()
    words = (("x-request-id", call.request_id), ("traceparent", traceparent(call)), ("tracestate", _tracestate(call)))
    return tuple(pair for pair in words if pair[1])


def _tracestate(call: Call) -> str:
    text = call.header("tracestate")
    return text if text.isascii() and text.isprintable() and len(text) <= 2 * _MOST else ""
