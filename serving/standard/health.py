"""Whether this process lives and can serve: as it knows itself, as pages, and as grpc.health.v1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Protocol

from grpc_health.v1 import health_pb2  # type: ignore[import-untyped]

from serving.calls.methods import Answer, Call, Method, Streaming, UnaryMethod
from serving.durations import duration_s
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.errors import NotFound
from serving.rights.rules import OPEN

SERVICE: Final = "grpc.health.v1.Health"
_LOOK_EVERY_S: Final = 1.0
_REQUEST: Final = health_pb2.HealthCheckRequest
_STATUS: Final = health_pb2.HealthCheckResponse


class HealthCalls:
    """SERVING while reads can be served, for the server as a whole ("") and for each of its services."""

    def __init__(self, own: ProcessHealth, services: Sequence[str]) -> None:
        self._own, self._services = own, frozenset(("", *services))
        self._leaving = False
        self._last, self._changed = self._now(), asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def methods(self) -> list[Method]:
        """Check and Watch, which everybody may call."""
        parsers = self._known_service_parser(parse_proto(_REQUEST)), self._known_service_parser(parse_json(_REQUEST))
        return [
            UnaryMethod(f"{SERVICE}/Check", *parsers, self._check, OPEN),
            Streaming(f"{SERVICE}/Watch", *parsers, self._watch, OPEN),
        ]

    def start(self) -> None:
        """Begin to look after the watches."""
        self._looking = asyncio.create_task(self._look_forever(), name="grpc health")

    async def stop(self) -> None:
        """Say NOT_SERVING from now on, whatever the health."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        self._leaving = True
        self._look()
        self._wake()  # watches that were told NOT_SERVING before: they end, too

    def _known_service_parser(self, parse: Callable[[bytes], Any]) -> Callable[[bytes], bool]:
        """Whether the service is one of ours; its name is never kept, since it may be as long as a caller likes."""
        return lambda body: parse(body).service in self._services

    def _check(self, is_known: bool, _: Call) -> Answer:
        if not is_known:
            raise NotFound("unknown service")
        return MessageAnswer(_STATUS(status=self._now()))

    async def _watch(self, is_known: bool, _: Call) -> AsyncIterator[Answer]:
        told: int | None = None
        while True:
            self._look()  # what is sent must be what the next look compares with, or a change would be missed
            changed, status = self._changed, self._last if is_known else _STATUS.SERVICE_UNKNOWN
            if status != told:
                told = status
                yield MessageAnswer(_STATUS(status=status))
            elif self._leaving:
                return  # nothing else will come, and a watch that stays open would take all of the grace
            else:
                await changed.wait()

    def _now(self) -> int:
        is_serving = not self._leaving and self._own.live() and self._own.has_loaded()
        return int(_STATUS.SERVING if is_serving else _STATUS.NOT_SERVING)

    def _look(self) -> None:
        if self._now() != self._last:
            self._last = self._now()
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _look_forever(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_EVERY_S)


class ProcessHealth(Protocol):
    """The health of the process as it knows it itself."""

    def live(self) -> bool:
        """Whether it can go on; False: only a restart would help."""
        ...

    def has_loaded(self) -> bool:
        """True: reads can be served."""
        ...

    def staleness_s(self) -> float | None:
        """For how long at most changes may have been missed; None: unknown."""
        ...

    def doubt(self) -> str:
        """Why the readable data may be largely incomplete; empty: they can be trusted."""
        ...

    def why(self) -> str:
        """Return the fault, in a sentence; empty: none."""
        ...


def livez(health: ProcessHealth) -> tuple[int, str]:
    """HTTP status and text: is the process alive?"""
    return (200, "ok\n") if health.live() else (503, f"not live: {_why(health)}\n")


def readyz(health: ProcessHealth, fresh: str = "", *, trusted: bool = False) -> tuple[int, str]:
    """HTTP status and text: can reads be served, and (with `fresh`) from data no older than that?

    With `trusted`: and was the store not replaced by one that holds far less, and that nobody has confirmed?

    Raises:
        InvalidRequest: `fresh` is not a duration.
    """
    bound_s = duration_s(fresh, "fresh") if fresh else None
    if not health.has_loaded():
        return 503, f"not ready: {_why(health)}\n"
    doubt = health.doubt()
    if trusted and doubt:
        return 503, f"in doubt: {doubt}\n"
    staleness_s = health.staleness_s()
    age = "of unknown age" if staleness_s is None else f"up to {staleness_s:.3f} s old"
    if bound_s is None or (staleness_s is not None and staleness_s <= bound_s):
        return 200, f"ok: answers are {age}\n" + (f"in doubt: {doubt}\n" if doubt else "")
    return 503, f"stale: answers are {age}, {fresh} was requested: {_why(health)}\n"


def _why(health: ProcessHealth) -> str:
    return health.why() or "no reason given"
