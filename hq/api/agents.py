"""Calls of agents in hq.v1.InstanceService: what to run, who may report, and reports."""

from __future__ import annotations

from google.protobuf.message import Message

from hq.errors import Stop
from hq.registry.registry import Registry
from hq.registry.reports import ReporterGrant
from hq.validation import check_id, check_item_count, require
from hqapi.requests import item_error
from hqpb.v1 import service_pb2
from serving.calls.methods import Answer, Call
from serving.encoding.jsonio import MOST_ITEMS, MessageAnswer
from serving.errors import ServiceError
from serving.rights.rules import Role

_TAKEN = b"\x0a\x00"  # an encoded ReportResult without an error, as field `result`


class Agents:
    """The calls of agents; where they are authenticated, they may name only their own node."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get_revision(self, request: service_pb2.GetRevisionRequest, call: Call) -> Answer:
        require(check_id(request.instance_id, "instance_id"), check_id(request.node, "node") if request.node else None)
        access = call.access
        found = await self._registry.revisions.get(
            request.instance_id,
            request.revision_id,
            request.node,
            access.check,
            is_agent=access.covers_node(request.node, (Role.AGENT,)),
            is_guarded=access.is_checked,
        )
        call.note_write(request.instance_id, found.entry.version)
        answer = service_pb2.GetRevisionResponse(
            revision=found.revisions,
            version=found.entry.version,
            uid=found.entry.traits.uid,
            allocation=found.allocation,
            source=self._registry.freshness.source().message(),
            service_id=found.entry.traits.service,
        )
        return MessageAnswer(answer)

    async def begin(self, request: service_pb2.BeginReportingRequest, call: Call) -> Answer:
        require(
            check_id(request.instance_id, "instance_id"),
            check_id(request.revision_id, "revision_id"),
            check_id(request.node, "node"),
        )
        reporter = await self._registry.reports.begin(
            request.instance_id, request.revision_id, request.node, self._registry.deadline(call.deadline)
        )
        return MessageAnswer(_begin_response(reporter))

    async def begin_many(self, request: service_pb2.BeginReportingsRequest, call: Call) -> Answer:
        require(check_item_count(len(request.begin), "begin"))
        outcomes = await self._registry.reports.begin_many(list(request.begin), self._registry.deadline(call.deadline))
        results = []
        for item, outcome in zip(request.begin, outcomes, strict=True):
            if isinstance(outcome, ServiceError):
                results.append(service_pb2.BeginResult(error=item_error(outcome)))
                call.note_write(item.instance_id, outcome=outcome.reason)
            else:
                results.append(service_pb2.BeginResult(answer=_begin_response(outcome)))
                call.note_write(item.instance_id)
        return MessageAnswer(service_pb2.BeginReportingsResponse(result=results))

    async def report(self, request: service_pb2.ReportStatusRequest, call: Call) -> Answer:
        self._note(request.node, call)
        await self._registry.reports.report(request, self._registry.deadline(call.deadline))
        answer = service_pb2.ReportStatusResponse()
        next_s = self._registry.reports.next_report_in_s(request.instance_id, request.revision.id)
        answer.next_report_in.FromMilliseconds(round(next_s * 1000))
        return MessageAnswer(answer)

    def turned_away(self, request: Message | None, call: Call, error: ServiceError) -> None:
        """Note reports that were refused unread for a reason of HQ's own: their agents are not silent."""
        if not error.is_ours:
            return
        refusals = self._registry.replica.liveness.refusals
        if isinstance(request, service_pb2.ReportStatusesRequest):
            reports = list(request.report)
        elif isinstance(request, service_pb2.ReportStatusRequest):
            reports = [request]
        else:
            access = call.access
            nodes = access.named_nodes((Role.AGENT,)) if access.is_checked else refusals.nodes_of(call.host)
            refusals.unread(nodes, error.reason)
            return
        for report in reports:
            if call.access.covers_node(report.node, (Role.AGENT,)):
                refusals.report(report, error.reason)

    def _note(self, node: str, call: Call) -> None:
        """Note which node an address reports for: without security nothing else tells."""
        if not call.access.is_checked:
            self._registry.replica.liveness.refusals.heard_from(call.host, node)

    async def report_many(self, request: service_pb2.ReportStatusesRequest, call: Call) -> Answer:
        require(
            check_item_count(len(request.report), "report"),
            check_item_count(
                sum(len(one.revision.container) for one in request.report), "report.container", MOST_ITEMS
            ),
        )
        for report in request.report:
            self._note(report.node, call)
        errors = await self._registry.reports.report_many(list(request.report), self._registry.deadline(call.deadline))
        if any(errors):
            for report, error in zip(request.report, errors, strict=True):
                if isinstance(error, Stop) and call.access.is_checked:
                    call.note_write(report.instance_id, outcome=error.reason)
            items = [service_pb2.ReportResult(error=item_error(error) if error else None) for error in errors]
            answer = service_pb2.ReportStatusesResponse(result=items)
        else:
            answer = service_pb2.ReportStatusesResponse.FromString(_TAKEN * len(errors))
        self._say_when_next(request, answer)
        return MessageAnswer(answer)

    def _say_when_next(
        self, request: service_pb2.ReportStatusesRequest, answer: service_pb2.ReportStatusesResponse
    ) -> None:
        reports, next_s = self._registry.reports, self._registry.reports.next_report_in_s()
        if reports.has_own_times:
            each = [reports.next_report_in_s(report.instance_id, report.revision.id) for report in request.report]
            for result, own_s in zip(answer.result, each, strict=True):
                result.next_report_in.FromMilliseconds(round(own_s * 1000))
            next_s = min(each)
        answer.next_report_in.FromMilliseconds(round(next_s * 1000))


def _begin_response(reporter: ReporterGrant) -> service_pb2.BeginReportingResponse:
    answer = service_pb2.BeginReportingResponse(incarnation=reporter.incarnation, uid=reporter.uid)
    answer.report_interval.FromMilliseconds(round(reporter.report_interval_s * 1000))
    answer.liveness_timeout.FromMilliseconds(round(reporter.timeout_s * 1000))
    return answer
