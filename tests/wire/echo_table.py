"""Methods that send back all that a call brought, and what must come back to whom."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from random import Random
from typing import Any, Final, NamedTuple

from hqpb.v1 import instance_pb2, service_pb2
from serving import errors
from serving.calls.current import CURRENT, request_id, trace_id
from serving.calls.methods import Answer, Call, Method, Streaming, UnaryMethod
from serving.clock import Clock
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.rights.reach import SHOWN
from serving.rights.rules import NOBODY, Rule
from tests.wire.fake_table import GET, WATCH

MESSAGES: Final = 3  # of a stream
_OF_PROTOCOLS: Final = frozenset(
    {"te", "content-type", "content-length", "user-agent", "host", "accept-encoding", "grpc-accept-encoding"}
)
_LATE_S: Final = 15.0  # a call may have waited so long before it was looked at
_PADS: Final = (0, 0, 3, 40, 200, 900)  # so that tables fill, and evict
Pairs = tuple[tuple[str, str], ...]


class Said(NamedTuple):
    """What one call brings. Its word, and most of its headers, occur in no other call.

    Attributes:
        fields: as they are on the wire, without those of the protocol.
        subject: whom its token is about; empty: nobody is asked.
    """

    word: str
    order: str
    fields: Pairs
    timeout_s: int
    subject: str = ""

    @property
    def is_stream(self) -> bool:
        return self.order == "stream"

    @property
    def body(self) -> bytes:
        text = f"{self.order}:{self.word}"
        if self.is_stream:
            return service_pb2.WatchInstancesRequest(resume_token=text).SerializeToString()
        return service_pb2.GetInstanceRequest(id=text).SerializeToString()


def say(rng: Random, caller: int, number: int, authorization: str = "", subject: str = "") -> Said:
    """The next call of a caller."""
    word = f"c{caller}-{number}"
    trace = f"00-{rng.getrandbits(128) | 1:032x}-{rng.getrandbits(64) | 1:016x}-01"
    fields = [
        ("x-request-id", word),
        ("authorization", authorization or f"Bearer {word}{'t' * rng.choice(_PADS)}"),
        ("traceparent", trace),
        (f"x-name-{caller % 7}", f"{word}{'n' * rng.choice(_PADS)}"),
        ("x-shared", rng.choice("abc")),
        ("x-own-bin", base64.b64encode(word.encode()).decode().rstrip("=")),
        *((("x-twin", word + "a"), ("x-twin", word + "b")) if rng.random() < 0.2 else ()),
    ]
    order = rng.choices(("now", "later", "fail", "stream", "hang"), (8, 6, 2, 2, 1))[0]
    return Said(word, order, tuple(fields), 100 + 40 * rng.randrange(400), subject)


class Came(NamedTuple):
    """What came back: gRPC's name of the status, headers and trailers, and messages with what they echo.

    `coarse`: the part by which a client may have made the timeout longer.
    """

    code: str
    message: str
    fields: Pairs
    echoes: tuple[dict[str, Any], ...] = ()
    coarse: float = 0.0


def echoes(said: Said, payloads: list[bytes]) -> tuple[dict[str, Any], ...]:
    """Echoes in the messages of an answer."""
    if said.is_stream:
        return tuple([json.loads(service_pb2.WatchInstancesResponse.FromString(one).reason) for one in payloads])
    parsed = [service_pb2.GetInstanceResponse.FromString(one).instance for one in payloads]
    return tuple([json.loads(one.meta.annotations["echo"]) for one in parsed])


class Mixed(AssertionError):
    """Somebody got what is another one's."""


class Ledger:
    """Looks at all that comes back, and counts it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def enter(self, said: Said, came: Came) -> None:
        """Raises Mixed."""
        about = [(name, value) for name, value in came.fields if name in ("x-echo", "x-echo-end", "x-request-id")]
        if {value for _, value in about} - {said.word} or "x-request-id" not in dict(about):
            raise Mixed(f"{said.word} got {about}, with {came.code}: {came.message}")
        self.counts[came.code] += 1
        if came.code == "OK":
            self._check_answer(said, came, dict(about))
        elif came.code == "NOT_FOUND" and came.message != f"there is no {said.word}":
            raise Mixed(f"{said.word} got {came.message}")
        elif came.code == "PERMISSION_DENIED" and not came.message.startswith(f"{said.subject} "):
            raise Mixed(f"{said.subject} was told: {came.message}")

    def _check_answer(self, said: Said, came: Came, about: dict[str, str]) -> None:
        if len(came.echoes) != (MESSAGES if said.is_stream else 1) or len(about) != 3:
            raise Mixed(f"{said.word} got {len(came.echoes)} messages, and {about}")
        for echo in came.echoes:
            wrong = _differences(said, echo, came.coarse)
            if wrong:
                raise Mixed(f"{said.word} ({said.order}): {wrong}")


def _differences(said: Said, echo: dict[str, Any], coarse: float) -> str:
    own = [(n, v) for n, v in echo["fields"] if n not in _OF_PROTOCOLS and "timeout" not in n and n[:8] != "connect-"]
    if sorted(own) != sorted(said.fields):
        return f"headers {sorted(set(own) ^ set(said.fields))}"
    trace = dict(said.fields)["traceparent"].split("-")[1]
    expected: dict[str, object] = {
        "text": f"{said.order}:{said.word}",
        "request_id": said.word,
        "identity": said.subject,
        "trace": trace,
    }
    expected |= {"is_current": True, "current_id": said.word}
    if wrong := {name: echo[name] for name, value in expected.items() if echo[name] != value}:
        return f"{wrong}, not { ({name: expected[name] for name in wrong}) }"
    if not said.timeout_s - _LATE_S <= echo["left_s"] <= said.timeout_s * (1 + coarse) + 0.1:
        return f"{echo['left_s']:.1f} s are left of {said.timeout_s}"
    return ""


class EchoTable:
    """`now`, `later`, `fail`, `hang` and `stream`, then the word of the call.

    Attributes:
        cancelled: calls that were under way when their callers left.
    """

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock, self._rng = clock, Random(seed)
        self.cancelled = 0

    def methods(self, rule: Rule = NOBODY) -> list[Method]:
        """The rule counts where security is on."""
        get, watch = service_pb2.GetInstanceRequest, service_pb2.WatchInstancesRequest
        return [
            UnaryMethod(GET, parse_proto(get), parse_json(get), self._get, rule, SHOWN),
            Streaming(WATCH, parse_proto(watch), parse_json(watch), self._watch, rule, SHOWN),
        ]

    def _get(self, request: service_pb2.GetInstanceRequest, call: Call) -> Answer | Awaitable[Answer]:
        order, _, word = request.id.partition(":")
        if order == "now":
            return self._instance(request.id, call)
        return self._later(order, word, request.id, call)

    async def _later(self, order: str, word: str, text: str, call: Call) -> Answer:
        try:
            await asyncio.sleep(3_600 if order == "hang" else self._rng.random() * 0.03)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if order == "fail":
            raise errors.NotFound(f"there is no {word}")
        return self._instance(text, call)

    async def _watch(self, request: service_pb2.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        for _ in range(MESSAGES):
            reason = self._echo(request.resume_token, call)
            yield MessageAnswer(service_pb2.WatchInstancesResponse(reason=reason))
            await asyncio.sleep(self._rng.random() * 0.01)

    def _instance(self, text: str, call: Call) -> Answer:
        instance = instance_pb2.Instance()
        instance.meta.annotations["echo"] = self._echo(text, call)
        return MessageAnswer(service_pb2.GetInstanceResponse(instance=instance))

    def _echo(self, text: str, call: Call) -> str:
        word = text.partition(":")[2]
        call.answer_header("x-echo", word)
        call.answer_trailer("x-echo-end", word)
        identity = call.access.identity
        echo = {
            "text": text,
            "fields": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in call.fields()],
            "left_s": (call.deadline or 0.0) - self._clock.now(),
            "request_id": call.request_id,
            "identity": identity.name if identity else "",
            "is_current": CURRENT.get() is call,
            "current_id": request_id(),
            "trace": trace_id(),
        }
        return json.dumps(echo)
