"""The calls of a service as rows of a table of methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from serving.calls.methods import Answer, Call, Streaming, Unary
from serving.encoding.jsonio import parse_json, parse_proto
from serving.encoding.memo import Memo
from serving.errors import HqError
from serving.rights import subjects
from serving.rights.rules import INSPECT, READ, Rule

M = TypeVar("M", bound=Message)


_SAFE = (READ, INSPECT)  # calls under these rules change nothing


class Service:
    """Makes rows; a call is named as its request is, without `Request`."""

    def __init__(self, name: str, subject: Callable[[Any], str] = subjects.subject) -> None:
        """`subject` says what a request is about, for the audit log."""
        self._name, self._subject = name, subject

    def unary(
        self,
        request: type[M],
        run: Callable[[M, Call], Answer | Awaitable[Answer]],
        rule: Rule,
        turned_away: Callable[[Any | None, Call, HqError], None] | None = None,
    ) -> Unary:
        """A call with one answer."""
        parsers = parse_proto(request), parse_json(request)
        return Unary(self._path(request), *parsers, run, rule, self._subject, rule in _SAFE, turned_away)

    def memoized(
        self,
        request: type[M],
        compiled: Callable[[M], Any],
        run: Callable[[Any, Call], Answer | Awaitable[Answer]],
        rule: Rule,
    ) -> Unary:
        """A call whose requests repeat: what `compiled` makes of one is remembered by its bytes, and never changed."""
        proto, json = parse_proto(request), parse_json(request)
        parsers = Memo(lambda body: compiled(proto(body))), Memo(lambda body: compiled(json(body)))
        return Unary(self._path(request), *parsers, run, rule, safe=rule in _SAFE)

    def streaming(self, request: type[M], run: Callable[[M, Call], AsyncIterator[Answer]], rule: Rule) -> Streaming:
        """A call with a stream of answers."""
        return Streaming(self._path(request), parse_proto(request), parse_json(request), run, rule)

    def _path(self, request: type[Message]) -> str:
        return f"{self._name}/{request.DESCRIPTOR.name.removesuffix('Request')}"
