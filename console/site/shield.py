"""Checks of every request, and security headers of every answer: hosts, origins, framing, scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from console.site.visits import BadPageRequest
from serving.sockets import is_loopback

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
ALWAYS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Shield:
    """The names by which this console is reached. Any other name is an attack (DNS rebinding)."""

    def __init__(self, listening: str, public_url: str = "", *, is_tls: bool = False) -> None:
        """`listening`: host:port; `public_url`: as people type it, if that is a proxy or another name."""
        scheme = "https" if is_tls else "http"
        hosts = {listening}
        if is_loopback(listening):
            port = listening.rpartition(":")[2]
            hosts |= {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")}
        self._origins = {f"{scheme}://{host}" for host in hosts}
        if public_url:
            own, _, host = public_url.rstrip("/").partition("://")
            hosts.add(host)
            self._origins.add(f"{own}://{host}")
        self.hosts: Collection[str] = frozenset(hosts)

    def check(self, method: str, authority: str, headers: Mapping[bytes, bytes]) -> None:
        """Raises BadPageRequest."""
        if authority not in self.hosts:
            raise BadPageRequest(
                421, f"the console does not answer as {authority[:100]!r}: use its own address, or --public-url"
            )
        if method in ("GET", "HEAD"):
            return
        origin = headers.get(b"origin", b"").decode("latin-1")
        site = headers.get(b"sec-fetch-site", b"same-origin")
        if (origin and origin not in self._origins) or site not in (b"same-origin", b"none"):
            raise BadPageRequest(403, "this form was sent by a page of another site: nothing was done")
