"""Calls that change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from hqclient.calls import Caller, Method, mask
from hqclient.errors import HqApiError
from hqclient.retry import Safety
from hqpb.v1 import service_pb2 as pb

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)

Req = TypeVar("Req", pb.GetInstanceRequest, pb.FindInstancesRequest, pb.CountInstancesRequest, pb.ListSilencesRequest)
Res = TypeVar(
    "Res", pb.GetInstanceResponse, pb.FindInstancesResponse, pb.CountInstancesResponse, pb.ListSilencesResponse
)


class ReadCalls(Caller):
    """Reads are repeated at other replicas until one answers or the time is up.

    `read=STRONG` asks for everything acknowledged anywhere before the call. Every answer says in `sources`
    how fresh it is and whose; look there before you trust an absence.
    """

    async def get(
        self,
        instance_id: str,
        *,
        fields: Iterable[str] = (),
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> pb.GetInstanceResponse:
        """One instance. Raises HqApiError NOT_FOUND if there is none."""
        request = pb.GetInstanceRequest(id=instance_id, field_mask=mask(fields), read=read)
        return await self._read_own_writes(lambda hq: hq.instances.GetInstance, request, timeout_s)

    async def find(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        fields: Iterable[str] = (),
        page_size: int = 0,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[pb.FindInstancesResponse]:
        """The instances that pass a filter, page by page, in order of their ids.

        Each page has `timeout_s` of its own. Pages are read one after the other, so they are of different
        versions: what is changed meanwhile may be missing or old. Watch if that matters.
        """
        request = pb.FindInstancesRequest(filter=where, field_mask=mask(fields), page_size=page_size, read=read)
        while True:
            page = await self._read_own_writes(lambda hq: hq.instances.FindInstances, request, timeout_s)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def count(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        by: pb.CountGroup = pb.COUNT_GROUP_UNSPECIFIED,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> pb.CountInstancesResponse:
        """How many instances pass a filter and how many of those are ready, by service, node or revision."""
        request = pb.CountInstancesRequest(filter=where, group_by=by, read=read)
        return await self._read_own_writes(lambda hq: hq.instances.CountInstances, request, timeout_s)

    async def silences(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        page_size: int = 0,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[pb.ListSilencesResponse]:
        """How long ago the instances that pass a filter were last heard from, page by page, in order of their ids.

        Each page has `timeout_s` of its own.
        """
        request = pb.ListSilencesRequest(filter=where, page_size=page_size, read=read)
        while True:
            page = await self._read_own_writes(lambda hq: hq.instances.ListSilences, request, timeout_s)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def get_revision(
        self, instance_id: str, revision_id: str = "", *, node: str = "", timeout_s: float | None = None
    ) -> pb.GetRevisionResponse:
        """Get what has to run, with secret descriptors; no revision_id: all revisions.

        Agents name their own `node`: an instance on another node is refused. Deploy systems name none.
        """
        request = pb.GetRevisionRequest(instance_id=instance_id, revision_id=revision_id, node=node)
        return await self.call(
            lambda hq: hq.instances.GetRevision, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )

    async def explain(self, instance_id: str, *, timeout_s: float | None = None) -> pb.ExplainInstanceResponse:
        """Why an instance is ready or not, as the answering replica sees it."""
        request = pb.ExplainInstanceRequest(id=instance_id)
        return await self.call(
            lambda hq: hq.instances.ExplainInstance, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )

    async def _read_own_writes(self, method: Method[Req, Res], request: Req, timeout_s: float | None) -> Res:
        """Ask for an answer that contains this client's own writes, unless their epoch turns out to be over."""
        own = self._own_writes
        if own is None:
            return await self.call(method, request, safety=Safety.REPEATABLE, timeout_s=timeout_s)
        demanding = type(request)()
        demanding.CopyFrom(request)
        if (required := own.required_options(request.read)) != request.read:
            demanding.read.CopyFrom(required)
        try:
            answer = await self.call(method, demanding, safety=Safety.REPEATABLE, timeout_s=timeout_s)
        except HqApiError as error:
            if error.reason != "EPOCH_CHANGED" or demanding == request:
                raise
            answer = await self.call(method, request, safety=Safety.REPEATABLE, timeout_s=timeout_s)
        own.saw(answer.sources)
        return answer
