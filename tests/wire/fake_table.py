"""A table of methods that does as its requests say, to drive the transports without a registry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from hq import errors as hq_errors
from hqpb.v1 import instance_pb2, service_pb2
from serving import errors
from serving.calls.methods import Answer, Call, Method, Streaming, UnaryMethod
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto

SERVICE = "hq.v1.InstanceService"
GET = f"{SERVICE}/GetInstance"
WATCH = f"{SERVICE}/WatchInstances"

FAILURES: dict[str, errors.ServiceError] = {
    type(e).__name__: e
    for e in (
        errors.Retry("not now", 2.5),
        errors.StoreUnavailable("the store is away", 0.2),
        errors.StoreFull("the store is full", 30.0),
        hq_errors.StoreLimit(1_000, 1_000),
        hq_errors.LivenessUnavailable("a replica does not know it", "spec.liveness"),
        hq_errors.EpochDoubted("it may have lost its instances", 1.0),
        errors.NotLoaded("not yet"),
        hq_errors.BehindVersion("not there yet"),
        errors.Overloaded("too much"),
        errors.ShuttingDown("good-bye"),
        errors.AuditUnavailable("disk full"),
        errors.FailedPrecondition("not as it stands", "web-1"),
        errors.StartOver("all is new"),
        hq_errors.EpochChanged("old", "new"),
        hq_errors.VersionConflict("web-1", 3, 7),
        hq_errors.AlreadyExists("web-1", 7),
        errors.invalid("instance.meta.id", "must not be empty"),
        errors.TooLarge("too much of it"),
        errors.UnknownMethod("no such call"),
        hq_errors.Stop("web-1", "stop it"),
        hq_errors.WrongNode("web-1", "it lives elsewhere"),
        hq_errors.WrongService("web-1", "web"),
        hq_errors.WrongUid("web-1", "it is another one"),
        hq_errors.UnknownRevision("web-1/r1", "it is not listed"),
        hq_errors.Fenced("web-1/r1", "another agent took over"),
        hq_errors.NotBegun("web-1/r1", "nobody reports it yet"),
        hq_errors.OutdatedReport("web-1/r1", "a newer one is stored"),
        errors.Unauthenticated("who are you"),
        errors.PermissionDenied("you may not"),
        errors.NotFound("there is no web-1"),
        errors.OutOfReach("there is no web-1", key="web-1"),
        errors.OutcomeUnknown("who knows"),
        errors.DeadlineExceeded("too late"),
        errors.ServiceError("broken"),
    )
}


def _boom() -> Exception:
    return RuntimeError("a secret of the machine room")


_ACCIDENTS: dict[str, Callable[[], BaseException]] = {
    "boom": _boom,
    "timeout": TimeoutError,
    "inner-cancel": asyncio.CancelledError,
}


class FakeRegistry:
    """What the methods saw, and levers to pull."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.started = asyncio.Event()
        self.ended = asyncio.Event()  # a call or stream is over, however it ended
        self.release = asyncio.Event()
        self.sent = 0  # messages of streams taken by the transport

    def methods(self) -> list[Method]:
        get, watch = service_pb2.GetInstanceRequest, service_pb2.WatchInstancesRequest
        return [
            UnaryMethod(GET, parse_proto(get), parse_json(get), self._get),
            Streaming(WATCH, parse_proto(watch), parse_json(watch), self._watch),
        ]

    async def _get(self, request: service_pb2.GetInstanceRequest, call: Call) -> Answer:
        """`id` is an order, `order:argument`; anything else comes back as the id of an instance."""
        self.calls.append(call)
        self.started.set()
        try:
            return await self._obey(request.id, call)
        finally:
            self.ended.set()

    async def _obey(self, text: str, call: Call) -> Answer:
        order, _, argument = text.partition(":")
        if order == "fail":
            raise FAILURES[argument]
        if order in _ACCIDENTS:
            accident = _ACCIDENTS[order]()
            raise accident
        if order == "wait":
            await self.release.wait()
        facts = {
            "deadline": "none" if call.deadline is None else "some",
            "request-id": call.request_id,
            "peer": call.peer,
        }
        return _instance(facts.get(order, text), "x" * int(argument) if order == "big" else "")

    async def _watch(self, request: service_pb2.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        """`resume_token` is an order: `count:N`, `fail:Error` (after two), `quiet` (after one), `endless`."""
        order, _, argument = request.resume_token.partition(":")
        self.calls.append(call)
        self.started.set()
        try:
            counts = {
                "count": int(argument or 0) if order == "count" else 0,
                "fail": 2,
                "quiet": 1,
                "boom": 0,
            }
            for number in range(counts.get(order, 1_000_000)):
                yield _event(number, padding=64_000 if order == "endless" else int(order == "count") * 2_000)
                self.sent += 1
            if order == "fail":
                raise FAILURES[argument]
            if order in _ACCIDENTS:
                accident = _ACCIDENTS[order]()
                raise accident
            if order == "quiet":
                await self.release.wait()
        finally:
            self.ended.set()


def _instance(name: str, padding: str) -> MessageAnswer:
    instance = instance_pb2.Instance()
    instance.meta.id = name
    if padding:
        instance.meta.annotations["padding"] = padding
    return MessageAnswer(service_pb2.GetInstanceResponse(instance=instance))


def _event(number: int, padding: int) -> MessageAnswer:
    return MessageAnswer(
        service_pb2.WatchInstancesResponse(
            kind=service_pb2.WATCH_KIND_EVENTS, resume_token=str(number), reason="x" * padding
        )
    )


class FakeHealth:
    """Health to be set by hand."""

    def __init__(self) -> None:
        self.is_live = True
        self.is_loaded = True
        self.staleness: float | None = 0.1
        self.reason = self.why_doubted = ""

    def live(self) -> bool:
        return self.is_live

    def has_loaded(self) -> bool:
        return self.is_loaded

    def staleness_s(self) -> float | None:
        return self.staleness

    def doubt(self) -> str:
        return self.why_doubted

    def why(self) -> str:
        return self.reason
