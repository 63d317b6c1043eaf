"""One request as a page sees it, and what a page answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote

from console.site.cookies import Jar

_MAX_FIELDS: Final = 200


@dataclass(frozen=True, slots=True)
class Visit:
    """Who asks for what, and when.

    Attributes:
        path: decoded. query, form: first values only, stripped.
        chosen: all values of the field `chosen`: rows of a list that were marked.
        now_s: Unix time, for ages.
        token: the person's own; empty: nobody signed in.
        flash: the result of the action before this page: (kind, text), kind "done" or "failed".
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    chosen: Sequence[str] = ()
    now_s: float = 0.0
    token: str = ""
    flash: tuple[str, str] = ("", "")
    target: str = ""  # path and query as they came, to come back to
    jar: Jar | None = None  # its cookies; None: a live page is rendered again


@dataclass(frozen=True, slots=True)
class TemplatePage:
    """A template with what it shows."""

    template: str
    title: str
    shown: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """Go there; `done` or `failed` is shown on the next page."""

    to: str
    done: str = ""
    failed: str = ""


class BadPageRequest(Exception):
    """The request itself is wrong; str() is for people.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


Handler = Callable[..., Awaitable[TemplatePage | Redirect]]


class Route(NamedTuple):
    """`pattern` like /services/{service}: each name is one part of the path, decoded."""

    method: str
    pattern: str
    handler: Handler


class Routes:
    """Finds the handler of a request."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(route.method, _compile_pattern(route.pattern), route.handler) for route in routes]

    def find(self, method: str, raw_path: str) -> tuple[Handler, dict[str, str]]:
        """The handler with the parts of the path that it takes. Raises BadPageRequest."""
        wanted = "GET" if method == "HEAD" else method
        others: set[str] = set()
        for allowed, pattern, handler in self._routes:
            if (match := pattern.fullmatch(raw_path)) is None:
                continue
            if allowed == wanted:
                return handler, {name: unquote(part) for name, part in match.groupdict().items()}
            others.add(allowed)
        if others:
            raise BadPageRequest(405, f"this address takes {' and '.join(sorted(others))}, not {method}")
        raise BadPageRequest(404, "there is no page at this address")


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))


def fields(encoded: bytes) -> dict[str, str]:
    """First values of a query or form. Raises BadPageRequest."""
    return {name: values[0].strip() for name, values in _parse(encoded).items()}


def chosen(encoded: bytes) -> list[str]:
    """The rows that were marked, each once. Raises BadPageRequest."""
    return list(dict.fromkeys(_parse(encoded).get("chosen", [])))


def _parse(encoded: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(encoded.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise BadPageRequest(400, f"cannot read the request: {error}") from error
