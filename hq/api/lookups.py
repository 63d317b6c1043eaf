"""Reads of hq.v1.InstanceService: parsed requests in, answers out. Nothing is decoded to look an instance up."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable
from typing import NamedTuple

from hq.api.answers import Answers
from hq.memory.query import Query
from hq.registry.guard_state import guard_in_short
from hq.registry.reads import Found, Sees
from hq.registry.registry import Registry
from hq.registry.source import NO_DEMANDS
from hq.validation import (
    check_duration,
    check_enums,
    check_field_mask,
    check_filter,
    check_id,
    check_page_size,
    require,
)
from hqpb.v1 import instance_pb2, service_pb2
from serving.calls.methods import Answer, Call
from serving.encoding.jsonio import MessageAnswer
from serving.encoding.parsing import Memo
from serving.errors import invalid
from serving.rights.access import Access
from serving.rights.rules import INSPECT

_MAX_BOOKMARK_S = 60


class Get(NamedTuple):
    """A parsed GetInstanceRequest."""

    id: str
    mask: tuple[str, ...]
    read: service_pb2.ReadOptions
    is_plain: bool  # all of it, as memory has it


class FindQuery(NamedTuple):
    """A parsed FindInstancesRequest."""

    query: Query
    page_size: int
    page_token: str
    mask: tuple[str, ...]
    read: service_pb2.ReadOptions


class Lookups:
    """The reading calls."""

    def __init__(self, registry: Registry, json_bytes: int) -> None:
        self._registry = registry
        self._answers = Answers(json_bytes)
        self._queries = Memo(_watch_query)  # thousands watch the same

    def get(self, request: Get, call: Call) -> Answer | Awaitable[Answer]:
        """Answer at once if memory has the instance."""
        found = self._registry.reads.get_now(request.id) if request.is_plain else None
        if found is None:
            return self._get(request, call)
        entry, source = found
        if not (call.access.is_unlimited or _sight(call.access)(entry.traits)):
            return self._get(request, call)  # must take as long as one that does not exist
        return self._answers.complete(Found([entry], [entry.fresh_frame or entry.frame()], "", source), single=True)

    async def _get(self, request: Get, call: Call) -> Answer:
        entry, source = await self._registry.reads.get(request.id, request.read, call.deadline, _sight(call.access))
        return await self._answers.find_answer(Found([entry], [entry.frame()], "", source), request.mask, single=True)

    def find(self, request: FindQuery, call: Call) -> Answer | Awaitable[Answer]:
        """Answer at once if memory has the list."""
        if request.mask or not (
            call.access.is_unlimited or call.access.proves(request.query.services, request.query.nodes)
        ):
            return self._find(request, call)
        found = self._registry.reads.find_now(request.query, request.page_size, request.page_token, request.read)
        return self._find(request, call) if found is None else self._answers.complete(found)

    async def _find(self, request: FindQuery, call: Call) -> Answer:
        is_proven = call.access.is_unlimited or not self._needs_look(request.query, call.access)
        sees = None if is_proven else _sight(call.access)
        found = await self._registry.reads.find(
            request.query, request.page_size, request.page_token, request.read, call.deadline, sees
        )
        return await self._answers.find_answer(found, request.mask)

    @staticmethod
    def _needs_look(query: Query, access: Access) -> bool:
        """Whether the instances must be looked at to tell if they are within reach: the filter only names ids."""
        if access.proves(query.services, query.nodes):
            return False
        if not query.ids:
            access.check_filter(query.services, query.nodes)
        return True

    async def count(self, request: service_pb2.CountInstancesRequest, call: Call) -> Answer:
        check_filter(request.filter)
        check_enums(request.read, "read")
        if request.group_by not in service_pb2.CountGroup.values():
            raise invalid("group_by", f"{request.group_by} is not a CountGroup")
        groups, source = await self._registry.reads.count(
            Query(request.filter), request.group_by, request.read, call.deadline
        )
        counts = [service_pb2.InstanceCount(**group._asdict()) for group in groups]
        return MessageAnswer(service_pb2.CountInstancesResponse(groups=counts, sources=[source.message()]))

    async def silences(self, request: service_pb2.ListSilencesRequest, call: Call) -> Answer:
        check_filter(request.filter)
        require(check_page_size(request.page_size))
        check_enums(request.read, "read")
        return MessageAnswer(
            await self._registry.silences.list(
                Query(request.filter), request.page_size, request.page_token, request.read, call.deadline
            )
        )

    def watch(self, request: service_pb2.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        query, token = self._queries(request.filter.SerializeToString(deterministic=True)), request.resume_token
        bookmark_s = 0
        if request.HasField("bookmark_interval"):
            require(check_duration(request.bookmark_interval, "bookmark_interval", _MAX_BOOKMARK_S))
            bookmark_s = math.ceil(request.bookmark_interval.ToMilliseconds() / 1000)
        return self._registry.watches.rendered_messages(
            query, token, self._answers.watch, bookmark_s, call.peer, call.pusher()
        )

    async def explain(self, request: service_pb2.ExplainInstanceRequest, call: Call) -> Answer:
        require(check_id(request.id, "id"))
        access = call.access
        told = await self._registry.explain.explain(request.id, call.deadline, _sight(access))
        if access.is_checked and not INSPECT.roles & access.grants.keys():
            told.guard.CopyFrom(guard_in_short(told.guard))
        return MessageAnswer(told)


def _sight(access: Access) -> Sees:
    return lambda one: access.covers(one.service, one.node)


def _watch_query(filter_bytes: bytes) -> Query:
    told = service_pb2.InstanceFilter.FromString(filter_bytes)
    check_filter(told)
    return Query(told)


def parsed_get(request: service_pb2.GetInstanceRequest) -> Get:
    require(check_id(request.id, "id"))
    mask, read = _mask(request), _read_options(request)
    return Get(request.id, mask, read, not mask and not read.ByteSize())


def parsed_find(request: service_pb2.FindInstancesRequest) -> FindQuery:
    check_filter(request.filter)
    require(check_page_size(request.page_size))
    read = _read_options(request)
    return FindQuery(Query(request.filter), request.page_size, request.page_token, _mask(request), read)


def _read_options(
    request: service_pb2.GetInstanceRequest | service_pb2.FindInstancesRequest,
) -> service_pb2.ReadOptions:
    if not request.HasField("read"):
        return NO_DEMANDS
    check_enums(request.read, "read")
    return request.read


def _mask(request: service_pb2.GetInstanceRequest | service_pb2.FindInstancesRequest) -> tuple[str, ...]:
    if not request.HasField("field_mask"):
        return ()
    check_field_mask(request.field_mask, instance_pb2.Instance.DESCRIPTOR)
    paths = tuple(request.field_mask.paths)
    return () if "*" in paths else paths
