"""Plain pages besides the calls: health, metrics, and what others add."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from serving import error_statuses
from serving.calls.methods import Call
from serving.context import ServerContext
from serving.encoding import gzipping
from serving.encoding.media import accepts_gzip
from serving.errors import UnknownMethod, invalid
from serving.protocol_errors import MethodNotAllowed
from serving.rights.reach import EVERYTHING, Reach
from serving.rights.rules import NOBODY, OPEN, READ_METRICS, Rule
from serving.standard import health as health_pages
from serving.standard.health import ProcessHealth

VITAL: Final = frozenset((b"/livez", b"/readyz", b"/metrics"))
"""Pages that are answered on connections beyond the limit, too: others decide by them whether to restart us."""

_TEXT: Final = "text/plain; charset=utf-8"
_MAX_PARAMETERS: Final = 100
_METHODS: Final = ("GET", "HEAD")


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
            raise invalid("", f"cannot parse the query: {error}") from error


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The answer of a page."""

    status: int
    content_type: str
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    def fields(self) -> list[tuple[bytes, bytes]]:
        """All headers."""
        return [(b"content-type", self.content_type.encode("latin-1")), *self.headers]


@dataclass(frozen=True, slots=True)
class HttpPage:
    """A page: who may read it, and what makes its answer, or raises ServiceError to be answered with that error."""

    answer: Callable[[PageRequest], Awaitable[PageAnswer]]
    rule: Rule = NOBODY
    reach: Reach | None = None


class Pages:
    """The pages of one server by their paths, each behind its guard."""

    def __init__(self, pages: Mapping[str, HttpPage], shared: ServerContext, calls: Collection[str] = ()) -> None:
        """`calls`: paths of calls, which take POST only."""
        self._pages, self._shared, self._calls = dict(pages), shared, calls
        self._guards = {path: shared.guard(path, page.rule, page.reach) for path, page in pages.items()}

    async def answer(self, path: str, method: str, request: PageRequest) -> PageAnswer:
        """The page, compressed where its reader takes that. Raises ServiceError, after it was counted."""
        guard, limits, call = self._guards.get(path), self._shared.limits, request.call
        try:
            page = self._page(path, method)
            if guard is not None and guard.admit is not None:
                guard.admit(call)
            if page.rule is not OPEN:
                self._shared.admission.check_rate(call.caller)
            answer = await page.answer(request)
            if len(answer.body) >= limits.gzip_min_bytes and accepts_gzip(request.headers.get(b"accept-encoding")):
                body = await gzipping.compress(answer.body, limits.gzip_level)
                answer = replace(answer, body=body, headers=[*answer.headers, (b"content-encoding", b"gzip")])
        except BaseException as error:
            told = error_statuses.as_service_error(error, call)
            self._shared.admission.count(told)
            if guard is not None:
                guard.on_call_refused(call, told)
            raise told from None
        return answer

    def _page(self, path: str, method: str) -> HttpPage:
        page = self._pages.get(path)
        if path in self._calls:
            raise MethodNotAllowed(method, "POST")
        if page is None:
            raise UnknownMethod(f"there is no {path[:200]!r}: calls are POST /<service>/<method>")
        if method not in _METHODS:
            raise MethodNotAllowed(method, ", ".join(_METHODS))
        return page


def own_pages(health: ProcessHealth, registry: CollectorRegistry, note: Callable[[], str] = str) -> dict[str, HttpPage]:
    """The pages that every server has, by path; `note` says what an operator should know besides the health."""

    async def livez(_: PageRequest) -> PageAnswer:
        return _text(*health_pages.livez(health))

    async def readyz(request: PageRequest) -> PageAnswer:
        asked = request.query()
        status, text = health_pages.readyz(health, asked.get("fresh", [""])[-1], trusted="trusted" in asked)
        noted = note()
        return _text(status, f"{text}note: {noted}\n" if noted else text)

    async def metrics(request: PageRequest) -> PageAnswer:
        request.call.access.check_all()  # metrics count everybody's calls, and name projects and budgets
        encode, content_type = _encoder(request.headers.get(b"accept", b"").decode("latin-1"))
        return PageAnswer(200, content_type, encode(registry))

    return {
        "/livez": HttpPage(livez, OPEN),
        "/readyz": HttpPage(readyz, OPEN),
        "/metrics": HttpPage(metrics, READ_METRICS, EVERYTHING),
    }


def index_page(calls: Sequence[str], pages: Sequence[str]) -> HttpPage:
    """A list of the calls and pages, for somebody who opens the port in a browser or with curl."""
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

    return HttpPage(index, OPEN)


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # the library fails on versions that are not numbers
        return choose_encoder("")


def _text(status: int, text: str) -> PageAnswer:
    return PageAnswer(status, _TEXT, text.encode())
