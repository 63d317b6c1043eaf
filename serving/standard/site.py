"""A site: every path that is neither a call nor a page of the server's own, answered by one function."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from serving.calls.methods import Call

MAX_FORM_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """One request; `body` is complete, and no longer than the site takes."""

    method: str
    path: str  # not decoded
    query_string: bytes
    headers: Mapping[bytes, bytes]
    authority: str  # host[:port] as the client named it
    body: bytes = b""
    call: Call = field(default_factory=Call)


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """The answer of a site: `body`, or `stream`, whose pieces are sent as they come, one in flight at a time."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""
    stream: AsyncGenerator[bytes] | None = None


def is_of_another_site(method: str, authority: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page of another site let a browser send this, which may change something.

    A browser sends a form to any site, with the cookies and certificates that it has for it, and says whose page it is.
    """
    if method in ("GET", "HEAD"):
        return False
    origin = headers.get(b"origin", b"").decode("latin-1")
    site = headers.get(b"sec-fetch-site", b"same-origin")
    return site not in (b"same-origin", b"none") or bool(origin and origin.partition("://")[2] != authority)


Site = Callable[[SiteRequest], Awaitable[SiteAnswer]]
"""Answers every request that reaches it, its own errors included. An attribute `max_body_bytes` of it, if there is one,
is the largest body it takes, instead of MAX_FORM_BYTES."""
