"""hq.v1.InstanceService as a table of methods: requests in, use cases, answers out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message

from hq.api.answers import Answers
from hq.entry import Entry
from hq.query import Query
from hq.registry.changes import SCHEDULER_PATHS
from hq.registry.explain import guard_in_short
from hq.registry.permits import Permit, check_entry
from hq.registry.reads import Found
from hq.registry.registry import Registry
from hq.registry.writes import Precondition
from hq.validation import (
    check_field_mask,
    check_filter,
    check_id,
    check_instance_update,
    check_item_count,
    check_new_instance,
    check_page_size,
    check_request_id,
    check_revision,
    require,
)
from hqpb.v1 import instance_pb2, service_pb2
from serving.auth.access import WRITERS, Access
from serving.auth.rules import BEGIN, FETCH, INSPECT, READ, REPORT, UPDATE, UPLOAD, Role, Rule
from serving.auth.subjects import subject
from serving.errors import HqError, invalid
from serving.jsonio import MessageAnswer, parse_json, parse_proto
from serving.memo import Memo
from serving.methods import Answer, Call, Method, Streaming, Unary
from serving.wire import item_error

SERVICE = "hq.v1.InstanceService"
_TAKEN = b"\x0a\x00"  # an encoded ReportResult without an error, as field `result`
M = TypeVar("M", bound=Message)


class Get(NamedTuple):
    """A parsed GetInstanceRequest."""

    id: str
    mask: tuple[str, ...]
    read: service_pb2.ReadOptions


class Find(NamedTuple):
    """A parsed FindInstancesRequest."""

    query: Query
    page_size: int
    page_token: str
    mask: tuple[str, ...]
    read: service_pb2.ReadOptions


class InstanceApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, registry: Registry, json_bytes: int) -> None:
        self._registry = registry
        self._answers = Answers(json_bytes)

    def methods(self) -> list[Method]:
        """All calls. GetInstance and FindInstances remember the requests that repeat."""
        return [
            _plain("CreateInstance", service_pb2.CreateInstanceRequest, self._create, UPLOAD),
            _plain("UpdateInstance", service_pb2.UpdateInstanceRequest, self._update, UPDATE),
            _plain("DeleteInstance", service_pb2.DeleteInstanceRequest, self._delete, UPLOAD),
            _plain("ApplyInstances", service_pb2.ApplyInstancesRequest, self._apply, UPLOAD),
            _plain("PutRevision", service_pb2.PutRevisionRequest, self._put_revision, UPLOAD),
            _plain("DeleteRevision", service_pb2.DeleteRevisionRequest, self._delete_revision, UPLOAD),
            _memoized("GetInstance", service_pb2.GetInstanceRequest, _parsed_get, self._get),
            _memoized("FindInstances", service_pb2.FindInstancesRequest, _parsed_find, self._find),
            _plain("CountInstances", service_pb2.CountInstancesRequest, self._count, READ),
            Streaming(
                f"{SERVICE}/WatchInstances",
                parse_proto(service_pb2.WatchInstancesRequest),
                parse_json(service_pb2.WatchInstancesRequest),
                self._watch,
                READ,
            ),
            _plain("GetRevision", service_pb2.GetRevisionRequest, self._get_revision, FETCH),
            _plain("BeginReporting", service_pb2.BeginReportingRequest, self._begin, BEGIN),
            _plain("ReportStatus", service_pb2.ReportStatusRequest, self._report, REPORT),
            _plain("ReportStatuses", service_pb2.ReportStatusesRequest, self._report_many, REPORT),
            _plain("ExplainInstance", service_pb2.ExplainInstanceRequest, self._explain, READ),
        ]

    # --- reads ------------------------------------------------------------------------------------------------------

    async def _get(self, request: Get, call: Call) -> Answer:
        entry, source = await self._registry.reads.get(request.id, request.read, call.deadline)
        if not call.access.is_unlimited:
            check_entry(call.access.check, entry)
        return await self._answers.found(Found([entry], [entry.frame()], "", source), request.mask, single=True)

    async def _find(self, request: Find, call: Call) -> Answer:
        is_proven = call.access.is_unlimited or not self._needs_look(request.query, call.access)
        found = await self._registry.reads.find(
            request.query, request.page_size, request.page_token, request.read, call.deadline
        )
        if not is_proven:
            for entry in found.entries:
                check_entry(call.access.check, entry)
        return await self._answers.found(found, request.mask)

    @staticmethod
    def _needs_look(query: Query, access: Access) -> bool:
        """Whether only the instances themselves tell if they are within reach: they are asked for by their ids."""
        if access.proves(query.services, query.nodes):
            return False
        if not query.ids:
            access.check_filter(query.services, query.nodes)
        return True

    async def _count(self, request: service_pb2.CountInstancesRequest, call: Call) -> Answer:
        check_filter(request.filter)
        if request.group_by not in service_pb2.CountGroup.values():
            raise invalid("group_by", f"{request.group_by} is not a CountGroup")
        call.access.check_filter(request.filter.service_id, request.filter.node_name)
        groups, source = await self._registry.reads.count(
            Query(request.filter), request.group_by, request.read, call.deadline
        )
        counts = [service_pb2.InstanceCount(key=g.key, total=g.total, ready=g.ready) for g in groups]
        return MessageAnswer(service_pb2.CountInstancesResponse(groups=counts, sources=[source.message()]))

    async def _watch(self, request: service_pb2.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        check_filter(request.filter)
        call.access.check_filter(request.filter.service_id, request.filter.node_name)
        async with aclosing(self._registry.watches.watch(Query(request.filter), request.resume_token)) as messages:
            async for message in messages:
                yield self._answers.watch(message)

    async def _explain(self, request: service_pb2.ExplainInstanceRequest, call: Call) -> Answer:
        require(check_id(request.id, "id"))
        told = await self._registry.explain.explain(request.id, call.deadline)
        access = call.access
        access.check(request.id, told.meta.service_id, told.node_name)
        if access.is_checked and not INSPECT.roles & access.grants.keys():
            told.guard.CopyFrom(guard_in_short(told.guard))
        return MessageAnswer(told)

    # --- writes -----------------------------------------------------------------------------------------------------

    async def _create(self, request: service_pb2.CreateInstanceRequest, call: Call) -> Answer:
        check_new_instance(request.instance)
        require(check_request_id(request.request_id))
        entry = await self._registry.writes.create(
            request.instance,
            request.request_id,
            self._deadline(call),
            validate_only=request.validate_only,
            permit=call.access.check,
        )
        return self._stored(service_pb2.CreateInstanceResponse, entry, call)

    async def _update(self, request: service_pb2.UpdateInstanceRequest, call: Call) -> Answer:
        mask = list(request.update_mask.paths) if request.HasField("update_mask") else None
        whole = not mask or "meta.service_id" in mask or "*" in mask or "meta" in mask
        check_instance_update(request.instance, service_required=whole)
        demanded = Precondition(request.instance.meta.version, request.epoch)
        entry = await self._registry.writes.update(
            request.instance,
            mask,
            demanded,
            self._deadline(call),
            validate_only=request.validate_only,
            permit=_update_permit(call.access, mask),
        )
        return self._stored(service_pb2.UpdateInstanceResponse, entry, call)

    async def _delete(self, request: service_pb2.DeleteInstanceRequest, call: Call) -> Answer:
        require(check_id(request.id, "id"))
        demanded = Precondition(request.version, request.epoch)
        version = await self._registry.writes.delete(request.id, demanded, self._deadline(call), call.access.check)
        call.touched(request.id, version)
        return MessageAnswer(service_pb2.DeleteInstanceResponse(version=version))

    async def _apply(self, request: service_pb2.ApplyInstancesRequest, call: Call) -> Answer:
        require(check_item_count(len(request.instance), "instance"))
        _check_unique([instance.meta.id for instance in request.instance])
        results = await self._registry.apply.apply(
            list(request.instance),
            request.epoch,
            self._deadline(call),
            validate_only=request.validate_only,
            permit=call.access.check,
        )
        for result in results:
            call.touched(result.instance_id, result.version, result.error.reason if result.error else "")
        items = [
            service_pb2.ApplyResult(
                id=r.instance_id,
                outcome=r.outcome,
                version=r.version,
                error=item_error(r.error) if r.error else None,
            )
            for r in results
        ]
        return MessageAnswer(service_pb2.ApplyInstancesResponse(result=items))

    async def _put_revision(self, request: service_pb2.PutRevisionRequest, call: Call) -> Answer:
        require(check_id(request.instance_id, "instance_id"))
        check_revision(request.revision)
        if other := set(request.update_mask.paths) - {"secret"}:
            raise invalid("update_mask", f"{min(other)!r} cannot be named here; only `secret` can")
        entry = await self._registry.writes.put_revision(
            request.instance_id,
            request.revision,
            Precondition(request.version, request.epoch),
            self._deadline(call),
            clear_secrets="secret" in request.update_mask.paths,
            validate_only=request.validate_only,
            permit=call.access.check,
        )
        return self._stored(service_pb2.PutRevisionResponse, entry, call)

    async def _delete_revision(self, request: service_pb2.DeleteRevisionRequest, call: Call) -> Answer:
        require(check_id(request.instance_id, "instance_id"), check_id(request.revision_id, "revision_id"))
        demanded = Precondition(request.version, request.epoch)
        entry = await self._registry.writes.delete_revision(
            request.instance_id, request.revision_id, demanded, self._deadline(call), call.access.check
        )
        return self._stored(service_pb2.DeleteRevisionResponse, entry, call)

    # --- agents -----------------------------------------------------------------------------------------------------

    async def _get_revision(self, request: service_pb2.GetRevisionRequest, call: Call) -> Answer:
        require(check_id(request.instance_id, "instance_id"), check_id(request.node, "node") if request.node else None)
        access = call.access
        if request.node and Role.UPLOADER not in access.grants:
            access.check_node(request.node, (Role.AGENT,))
        found = await self._registry.revisions.get(
            request.instance_id,
            request.revision_id,
            request.node,
            access.check,
            is_agent=access.covers_node(request.node, (Role.AGENT,)),
            is_guarded=access.is_checked,
        )
        call.touched(request.instance_id, found.entry.version)
        answer = service_pb2.GetRevisionResponse(
            revision=found.revisions,
            version=found.entry.version,
            uid=found.entry.traits.uid,
            allocation=found.allocation,
            source=self._registry.freshness.source().message(),
        )
        return MessageAnswer(answer)

    async def _begin(self, request: service_pb2.BeginReportingRequest, call: Call) -> Answer:
        require(
            check_id(request.instance_id, "instance_id"),
            check_id(request.revision_id, "revision_id"),
            check_id(request.node, "node"),
        )
        call.access.check_node(request.node, (Role.AGENT,))
        reporter = await self._registry.reports.begin(
            request.instance_id, request.revision_id, request.node, self._deadline(call)
        )
        answer = service_pb2.BeginReportingResponse(incarnation=reporter.incarnation, uid=reporter.uid)
        answer.report_interval.FromMilliseconds(round(reporter.report_interval_s * 1000))
        answer.liveness_timeout.FromMilliseconds(round(reporter.timeout_s * 1000))
        return MessageAnswer(answer)

    async def _report(self, request: service_pb2.ReportStatusRequest, call: Call) -> Answer:
        call.access.check_node(request.node, (Role.AGENT,))
        await self._registry.reports.report(request, self._deadline(call))
        answer = service_pb2.ReportStatusResponse()
        answer.next_report_in.FromMilliseconds(round(self._registry.reports.next_report_in_s() * 1000))
        return MessageAnswer(answer)

    async def _report_many(self, request: service_pb2.ReportStatusesRequest, call: Call) -> Answer:
        require(check_item_count(len(request.report), "report"))
        if call.access.is_checked:  # one report of another node, and none of them is taken
            for i, report in enumerate(request.report):
                call.access.check_node(report.node, (Role.AGENT,), f"report[{i}].node")
        errors = await self._registry.reports.report_many(list(request.report), self._deadline(call))
        if any(errors):
            items = [service_pb2.ReportResult(error=item_error(error) if error else None) for error in errors]
            answer = service_pb2.ReportStatusesResponse(result=items)
        else:
            answer = service_pb2.ReportStatusesResponse.FromString(_TAKEN * len(errors))
        answer.next_report_in.FromMilliseconds(round(self._registry.reports.next_report_in_s() * 1000))
        return MessageAnswer(answer)

    def _deadline(self, call: Call) -> float:
        """When the caller stops waiting for a write; without a word of it, the default."""
        if call.deadline is not None:
            return call.deadline
        replica = self._registry.replica
        return replica.clock.now() + replica.config.write_timeout_s

    @staticmethod
    def _stored(answer: Callable[..., Message], entry: Entry, call: Call) -> Answer:
        call.touched(entry.traits.id, entry.version)
        return MessageAnswer(answer(instance=entry.instance()))


def _update_permit(access: Access, mask: list[str] | None) -> Permit:
    """A scheduler names what it writes, and nothing but what is its own."""
    if mask and set(mask) <= set(SCHEDULER_PATHS):
        return access.check
    if access.is_checked and not set(WRITERS) & access.grants.keys():
        access.deny(f"anything but {' and '.join(SCHEDULER_PATHS)}, named in update_mask", WRITERS)
    return partial(access.check, roles=WRITERS)


def _plain(name: str, request: type[M], run: Callable[[M, Call], Awaitable[Answer]], rule: Rule) -> Unary:
    return Unary(f"{SERVICE}/{name}", parse_proto(request), parse_json(request), run, rule, subject)


def _memoized(
    name: str, request: type[M], compiled: Callable[[M], Any], run: Callable[..., Awaitable[Answer]]
) -> Unary:
    proto, json = parse_proto(request), parse_json(request)
    return Unary(
        f"{SERVICE}/{name}",
        Memo(lambda body: compiled(proto(body))),
        Memo(lambda body: compiled(json(body))),
        run,
        READ,
    )


def _parsed_get(request: service_pb2.GetInstanceRequest) -> Get:
    require(check_id(request.id, "id"))
    return Get(request.id, _mask(request), request.read)


def _parsed_find(request: service_pb2.FindInstancesRequest) -> Find:
    check_filter(request.filter)
    require(check_page_size(request.page_size))
    return Find(Query(request.filter), request.page_size, request.page_token, _mask(request), request.read)


def _mask(request: service_pb2.GetInstanceRequest | service_pb2.FindInstancesRequest) -> tuple[str, ...]:
    check_field_mask(request.field_mask, instance_pb2.Instance.DESCRIPTOR)
    paths = tuple(request.field_mask.paths)
    return () if "*" in paths else paths


def _check_unique(ids: list[str]) -> None:
    seen: set[str] = set()
    for i, instance_id in enumerate(ids):
        if instance_id in seen:
            raise invalid(f"instance[{i}].meta.id", f"{instance_id!r} occurs twice in one request")
        seen.add(instance_id)


__all__ = ["HqError", "InstanceApi"]
