"""The table of methods: how to read a call's request, how to run it, how to write its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

from serving.encoding.jsonio import parse_json, parse_proto
from serving.encoding.parsing import Memo
from serving.errors import ServiceError
from serving.limiting.peers import host_of
from serving.rights.access import UNCHECKED, Access
from serving.rights.reach import Reach
from serving.rights.rules import NOBODY, AuditLevel, Rule

T = TypeVar("T")

Push = Callable[[bytes], bool]
"""Sends a payload. False: it cannot be sent here, or not now."""


def never_pushed(_payload: bytes) -> bool:
    """A Push of calls that take none."""
    return False


async def maybe_await(result: T | Awaitable[T]) -> T:
    """The result, awaited if it did not come at once."""
    return await result if isinstance(result, Awaitable) else result


CHANGED: Final = "CHANGED"
"""The outcome of a report that changed something, as few do: it is recorded even where only denials are."""


class Touch(NamedTuple):
    """The result of a write for one instance or node, for the audit log; `outcome` empty: that of the call."""

    key: str
    version: int = 0
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """Circumstances of one call.

    Attributes:
        deadline: on the injected clock, in seconds; None: the caller set none (a default applies to writes).
        peer: the caller's address, for messages.
        request_id: the caller's id for this call, or one made up.
        access: who calls and what it may touch.
    """

    deadline: float | None = None
    peer: str = ""
    request_id: str = ""
    access: Access = UNCHECKED
    _touches: Sequence[Touch] = ()

    @property
    def host(self) -> str:
        """The caller's address without its port: what limits per peer count by."""
        return host_of(self.peer)

    @property
    def touches(self) -> Sequence[Touch]:
        """Return the objects that the call wrote."""
        return getattr(self, "_touches", ())  # few calls write: the others do without setting it

    @property
    def caller(self) -> str:
        """Who calls, or else from which host: what rate limits count by."""
        identity = self.access.identity
        return self.host if identity is None else identity.name

    @property
    def uid(self) -> int:
        """The user whose process calls, at a Unix socket; -1: not known."""
        return -1

    def header(self, name: str) -> str:
        """A header (HTTP) or metadata entry (gRPC) of the call by its lower-case name; empty: there is none."""
        return ""

    def all_headers(self, name: str) -> tuple[str, ...]:
        """All headers of this name: where two would contradict each other, the first must not win."""
        return ()

    def certificate(self) -> bytes:
        """The client's certificate in PEM form, which TLS has verified; empty: it showed none."""
        return b""

    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        """All headers as they came, names in lower case."""
        return ()

    def answer_header(self, name: str, value: str) -> None:
        """Send this with the head of the answer, if nothing was sent yet."""

    def answer_trailer(self, name: str, value: str) -> None:
        """Send this with the end of the answer, as trailers of the protocol."""

    def pusher(self) -> Push:
        """A function that sends one more answer, in protobuf, while the stream waits for its next one."""
        return never_pushed

    def note_write(self, key: str, version: int = 0, outcome: str = "") -> None:
        """Note for the audit log what was written."""
        noted = self.touches
        if not isinstance(noted, list):  # a batch has thousands, which must not be copied for each
            noted = [*noted]
            object.__setattr__(self, "_touches", noted)
        noted.append(Touch(key, version, outcome))

    def set_access(self, access: Access) -> None:
        """Set what the gate has decided."""
        object.__setattr__(self, "access", access)


class Answer(Protocol):
    """An answer in waiting: bytes are made for the format that was asked for, and only for it."""

    def proto(self) -> bytes:
        """The encoded message."""
        ...

    def json(self) -> bytes | Awaitable[bytes]:
        """The message as proto3 JSON: at once, or, where it must be made first, in slices that yield to the loop."""
        ...


@dataclass(frozen=True, slots=True)
class UnaryMethod:
    """A call with one answer. `parse` and `parse_json` raise InvalidRequest; `run` raises ServiceError.

    `run` answers at once what memory can answer; for anything else it returns an awaitable, and gets a task.
    `subject` says what a request is about, for the audit log. `safe`: it changes nothing, so that GET is allowed.
    `only_stops`: the request only makes less happen (freeze, pause, cancel), so it is carried out also while it cannot
    be recorded. `turned_away` is told of calls that ended before `run`, with the request if it could be read.
    """

    path: str  # e.g. "hq.v1.InstanceService/GetInstance"
    parse: Callable[[bytes], Any]
    parse_json: Callable[[bytes], Any]
    run: Callable[[Any, Call], Answer | Awaitable[Answer]]
    rule: Rule = NOBODY
    reach: Reach | None = None
    subject: Callable[[Any], str] = lambda _: ""
    safe: bool = False
    turned_away: Callable[[Any | None, Call, ServiceError], None] | None = None
    only_stops: Callable[[Any], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class Streaming:
    """A call with a stream of answers, which ends by itself or with a ServiceError."""

    path: str
    parse: Callable[[bytes], Any]
    parse_json: Callable[[bytes], Any]
    run: Callable[[Any, Call], AsyncIterator[Answer]]
    rule: Rule = NOBODY
    reach: Reach | None = None


@dataclass(frozen=True, slots=True)
class Duplex:
    """A call with a stream of requests, and a stream of answers, or one (`one_answer`), which comes last."""

    path: str
    parse: Callable[[bytes], Any]
    parse_json: Callable[[bytes], Any]
    run: Callable[[AsyncIterator[Any], Call], AsyncIterator[Answer]]
    rule: Rule = NOBODY
    reach: Reach | None = None
    one_answer: bool = False


Method = UnaryMethod | Streaming | Duplex


M = TypeVar("M", bound=Message)


def _is_safe(rule: Rule) -> bool:
    """Whether calls under the rule change nothing."""
    return rule.record is AuditLevel.NOTHING


class ServiceTable:
    """Makes rows of the table; a call is named like its request, without `Request`."""

    def __init__(self, name: str, subject: Callable[[Any], str] = lambda _: "") -> None:
        """`subject` says what a request is about, for the audit log."""
        self._name, self._subject = name, subject

    def unary(
        self,
        request: type[M],
        run: Callable[[M, Call], Answer | Awaitable[Answer]],
        rule: Rule,
        reach: Reach,
        turned_away: Callable[[Any | None, Call, ServiceError], None] | None = None,
        only_stops: Callable[[M], bool] = lambda _: False,
    ) -> UnaryMethod:
        """A call with one answer."""
        parsers = parse_proto(request), parse_json(request)
        path, is_safe = self._path(request), _is_safe(rule)
        return UnaryMethod(path, *parsers, run, rule, reach, self._subject, is_safe, turned_away, only_stops)

    def memoized_unary(
        self,
        request: type[M],
        compiled: Callable[[M], Any],
        run: Callable[[Any, Call], Answer | Awaitable[Answer]],
        rule: Rule,
        reach: Reach,
    ) -> UnaryMethod:
        """A call whose requests repeat: what `compiled` makes of one is kept by its bytes, and never changed."""
        proto, json = parse_proto(request), parse_json(request)
        parsers = Memo(lambda body: compiled(proto(body))), Memo(lambda body: compiled(json(body)))
        return UnaryMethod(self._path(request), *parsers, run, rule, reach, safe=_is_safe(rule))

    def streaming(
        self, request: type[M], run: Callable[[M, Call], AsyncIterator[Answer]], rule: Rule, reach: Reach
    ) -> Streaming:
        """A call with a stream of answers."""
        return Streaming(self._path(request), parse_proto(request), parse_json(request), run, rule, reach)

    def _path(self, request: type[Message]) -> str:
        return f"{self._name}/{request.DESCRIPTOR.name.removesuffix('Request')}"
