"""Plain pages beside the calls: health, metrics, and what others add."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from serving import health as health_pages
from serving.calls.methods import Call
from serving.errors import invalid
from serving.health import Health

_TEXT: Final = "text/plain; charset=utf-8"
_MAX_PARAMETERS: Final = 100


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A GET request for a page."""

    headers: Mapping[bytes, bytes]
    query_string: bytes
    call: Call = field(default_factory=Call)

    def query(self) -> dict[str, list[str]]:
        """Parameters of the query, each with all of its values.

        Raises:
            InvalidRequest: there are more than a hundred.
        """
        try:
            text = self.query_string.decode("latin-1")
            return parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError as error:
            raise invalid("", f"the query cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What a page answers."""

    status: int
    content_type: str
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


Page = Callable[[PageRequest], Awaitable[PageAnswer]]
"""A page raises HqError to be answered with that error."""


def own_pages(health: Health, registry: CollectorRegistry, note: Callable[[], str] = str) -> dict[str, Page]:
    """The pages that every server has, by path; `note` says what an operator should know beside the health."""

    async def livez(_: PageRequest) -> PageAnswer:
        return _text(*health_pages.livez(health))

    async def readyz(request: PageRequest) -> PageAnswer:
        asked = request.query()
        status, text = health_pages.readyz(health, asked.get("fresh", [""])[-1], trusted="trusted" in asked)
        noted = note()
        return _text(status, f"{text}note: {noted}\n" if noted else text)

    async def metrics(request: PageRequest) -> PageAnswer:
        encode, content_type = _encoder(request.headers.get(b"accept", b"").decode("latin-1"))
        return PageAnswer(200, content_type, encode(registry))

    return {"/livez": livez, "/readyz": readyz, "/metrics": metrics}


def index_page(calls: Sequence[str], pages: Sequence[str]) -> Page:
    """What there is, for whoever looks at the port with a browser or curl."""
    services: dict[str, list[str]] = {}
    for call in calls:
        service, _, name = call.partition("/")
        services.setdefault(service, []).append(name)
    lines = ["Calls, over gRPC, gRPC-Web and Connect (POST /SERVICE/CALL, application/json or application/proto):"]
    lines += [f"  {service}: {', '.join(sorted(names))}" for service, names in sorted(services.items())]
    lines += ["Pages:", *(f"  {path}" for path in sorted(pages))]
    body = "\n".join([*lines, ""]).encode()

    async def index(_: PageRequest) -> PageAnswer:
        return PageAnswer(200, _TEXT, body)

    return index


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # the library stumbles over versions that are no numbers
        return choose_encoder("")


def _text(status: int, text: str) -> PageAnswer:
    return PageAnswer(status, _TEXT, text.encode())
