"""The calls that supervisors make at the host agent: hq.v1's own, each forwarded for its own instance only."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from hqapi.reach import FETCHED, FOUND, INSTANCE, OWN_NODE
from hqapi.rules import BEGIN, FETCH, REPORT
from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.gathering import Gathering, Key, ReportRhythm, encode_batch_item
from instancectl.hostagent.picture import NodeInstances
from instancectl.hostagent.speakers import Speakers
from instancectl.hostagent.status import PATH as STATUS_PATH
from instancectl.hostagent.status import LatestReports
from instancectl.hostagent.upstream import Upstream, UpstreamError, batch_item_error
from serving.calls.methods import Answer, Call, Method, Streaming, UnaryMethod
from serving.clock import Clock
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.errors import NotFound, PermissionDenied, ServiceError, invalid
from serving.rights.reach import Reach
from serving.rights.rules import OPEN, READ, Rule

LINGER_S: Final = 0.1
_DEFAULT_S: Final = 10.0  # for calls without a deadline, and the limit for calls that are batched
_MOST_WATCHED: Final = 100  # instances in one watch: each costs an authorization check
_OWN_SHARE, _OWN_S = 0.1, 0.2  # of the time, reserved for telling the caller that HQ did not answer

M = TypeVar("M", bound=Message)


class HostAgentCalls:
    """The table of methods. Whatever is not in it is UNIMPLEMENTED."""

    def __init__(
        self, node: str, upstream: Upstream, picture: NodeInstances, speakers: Speakers, clock: Clock, linger_s: float
    ) -> None:
        self._node, self._upstream, self._picture = node, upstream, picture
        self._speakers, self._clock = speakers, clock
        self._rhythm, self._heard = ReportRhythm(clock), LatestReports()
        self.reports = Gathering(self._sender("ReportStatuses"), self._report_results, clock, linger_s)
        self.begins = Gathering(self._sender("BeginReportings"), _begin_results, clock, linger_s)

    def methods(self) -> list[Method]:
        """All calls."""
        return [
            self._unary(pb.ReportStatusRequest, self._report, REPORT, OWN_NODE, pb.ReportStatusesRequest),
            self._unary(pb.BeginReportingRequest, self._begin, BEGIN, OWN_NODE, pb.BeginReportingsRequest),
            self._unary(pb.GetRevisionRequest, self._get_revision, FETCH, FETCHED),
            self._unary(pb.GetInstanceRequest, self._get_instance, READ, INSTANCE),
            Streaming(
                "hq.v1.InstanceService/WatchInstances",
                parse_proto(pb.WatchInstancesRequest),
                parse_json(pb.WatchInstancesRequest),
                self._watch,
                READ,
                FOUND,
            ),
            UnaryMethod(STATUS_PATH, bytes, bytes, self._status, OPEN),
        ]

    async def drain(self) -> None:
        """Return when HQ has answered everything that was accepted."""
        await self.begins.drain()
        await self.reports.drain()

    # --- carried with others ---

    async def _report(self, raw: _Raw, call: Call) -> Answer:
        report: pb.ReportStatusRequest = raw.message
        self._check(call, report.instance_id, report.node)
        refused = "NO_ANSWER"
        try:
            answer = await self._call_in_batch(
                self.reports, (report.instance_id, report.revision.id), raw, call, "report"
            )
        except ServiceError as error:
            refused = error.reason
            raise
        else:
            refused = ""
            return answer
        finally:
            self._heard.note(report, refused, self._clock.now())

    async def _begin(self, raw: _Raw, call: Call) -> Answer:
        request: pb.BeginReportingRequest = raw.message
        self._check(call, request.instance_id, request.node)
        return await self._call_in_batch(self.begins, (request.instance_id, request.revision_id), raw, call, "begin")

    async def _call_in_batch(self, to: Gathering, key: Key, raw: _Raw, call: Call, field: str) -> Answer:
        # The longest deadline in a batch decides for all: cap it, so that nobody holds up others for hours.
        deadline = min(self._deadline(call), self._clock.now() + _DEFAULT_S)
        placed = await to.add(key, raw.body, deadline)
        error, answer = placed.result
        if error is not None:
            raise batch_item_error(error, f"{field}[{placed.place}]")
        return MessageAnswer(answer)

    def _report_results(self, body: bytes) -> Sequence[Any]:
        answer = pb.ReportStatusesResponse.FromString(body)
        return [
            (result.error if result.HasField("error") else None, self._report_answer(result, answer))
            for result in answer.result
        ]

    def _report_answer(self, result: pb.ReportResult, answer: pb.ReportStatusesResponse) -> pb.ReportStatusResponse:
        """The answer for one report: when its supervisor reports next. An older HQ says that for the whole batch."""
        hint = result.next_report_in if result.HasField("next_report_in") else answer.next_report_in
        told = pb.ReportStatusResponse()
        told.next_report_in.FromMilliseconds(round(self._rhythm.next_s(hint.ToTimedelta().total_seconds()) * 1000))
        return told

    # --- carried by themselves ---

    async def _get_revision(self, raw: _Raw, call: Call) -> Answer:
        request: pb.GetRevisionRequest = raw.message
        self._check(call, request.instance_id, request.node)
        return _UndecodedAnswer(await self._forward_call("GetRevision", raw, call), pb.GetRevisionResponse)

    async def _get_instance(self, raw: _Raw, call: Call) -> Answer:
        request: pb.GetInstanceRequest = raw.message
        self._check(call, request.id, self._node)
        if request.field_mask.paths:
            raise invalid("field_mask", "request the whole instance: the host agent must see which node it is on")
        answer = await self._forward_call("GetInstance", raw, call)
        if pb.GetInstanceResponse.FromString(answer).instance.spec.node_name != self._node:
            raise NotFound(f"there is no instance {request.id} on node {self._node}")
        return _UndecodedAnswer(answer, pb.GetInstanceResponse)

    async def _watch(self, request: pb.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        ids = list(request.filter.instance_id)
        if not ids or pb.InstanceFilter(instance_id=ids) != request.filter:
            raise invalid(
                "filter", "the host agent only serves your own instances: name them, and only them, in instance_id"
            )
        if len(ids) > _MOST_WATCHED:
            raise invalid("filter.instance_id", f"{len(ids)} are too many: name at most {_MOST_WATCHED} in one watch")
        for name in ids:
            self._check(call, name, self._node)
        async for message in self._picture.watch(ids, resumes=bool(request.resume_token)):
            yield MessageAnswer(message)

    async def _forward_call(self, method: str, raw: _Raw, call: Call) -> bytes:
        try:
            return await self._upstream.unary(method, raw.body, self._deadline(call))
        except UpstreamError as failed:
            raise failed.service_error() from None

    def _status(self, _request: bytes, call: Call) -> Answer:
        now = self._clock.now()
        rows = self._heard.rows(self._speakers.of(call.uid), now)
        return _Json({"node": self._node, "trouble": self._picture.trouble, "revisions": rows})

    # --- for all of them ---

    def _check(self, call: Call, instance_id: str, node: str) -> None:
        """Callers may only access their own instances on this node. Raises PermissionDenied."""
        if not self._speakers.may(call.uid, instance_id):
            hint = "start the host agent with --allow USER=INSTANCE"
            raise PermissionDenied(f"{call.peer} is not authorized to speak for instance {instance_id}: {hint}")
        if node != self._node:
            asked = node or "any (name it in node)"
            raise PermissionDenied(f"this is the host agent of node {self._node}, not of {asked}")

    def _deadline(self, call: Call) -> float:
        """The deadline of the call to HQ: a little before the caller's."""
        now = self._clock.now()
        left_s = (call.deadline if call.deadline is not None else now + _DEFAULT_S) - now
        return now + left_s - min(_OWN_S, left_s * _OWN_SHARE)

    def _sender(self, method: str) -> Callable[[bytes, float], Awaitable[bytes]]:
        return lambda request, deadline: self._upstream.unary(method, request, deadline)

    def _unary(
        self,
        request: type[M],
        run: Callable[[_Raw, Call], Awaitable[Answer]],
        rule: Rule,
        reach: Reach,
        batch: type[Message] | None = None,
    ) -> UnaryMethod:
        proto, from_json = parse_proto(request), parse_json(request)
        if batch is not None:
            proto = _as_listed(request, batch)

        def of_json(body: bytes) -> _Raw:
            message = from_json(body)
            return _Raw(message.SerializeToString(), message)

        path = f"hq.v1.InstanceService/{request.DESCRIPTOR.name.removesuffix('Request')}"
        return UnaryMethod(path, lambda body: _Raw(body, proto(body)), of_json, run, rule, reach)


def _as_listed(request: type[M], batch: type[Message]) -> Callable[[bytes], M]:
    """Parses a message inside a batch, as HQ will: one that parses only alone (too deep) would fail the batch."""
    field = batch.DESCRIPTOR.fields_by_number[1].name

    def parse(body: bytes) -> M:
        try:
            found: M = getattr(batch.FromString(encode_batch_item(bytes(body))), field)[0]
        except DecodeError as error:
            raise invalid("", f"the body is not a valid {request.DESCRIPTOR.full_name}") from error
        return found

    return parse


class _Raw:
    """A request as bytes and parsed: the parsed form decides who it is about, the bytes are forwarded."""

    __slots__ = ("body", "message")

    def __init__(self, body: bytes, message: Any) -> None:
        self.body, self.message = bytes(body), message


class _UndecodedAnswer:
    """An answer as received."""

    __slots__ = ("_body", "_type")

    def __init__(self, body: bytes, type_: type[Message]) -> None:
        self._body, self._type = body, type_

    def proto(self) -> bytes:
        return self._body

    def json(self) -> bytes | Awaitable[bytes]:
        return MessageAnswer(self._type.FromString(self._body)).json()


class _Json:
    """An answer that is not a message."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def proto(self) -> bytes:
        return b""

    def json(self) -> bytes:
        return json.dumps(self._value).encode()


def _begin_results(body: bytes) -> Sequence[Any]:
    answer = pb.BeginReportingsResponse.FromString(body)
    return [(result.error if result.HasField("error") else None, result.answer) for result in answer.result]
