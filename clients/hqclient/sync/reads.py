"""The calls of hqclient.reads, to wait for. Made by tools/gen_sync_client.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hqclient.reads import ReadCalls
from hqclient.sync.caller import SyncCaller
from hqpb.v1 import service_pb2 as pb


class SyncReadCalls(SyncCaller):
    """As hqclient.reads.ReadCalls."""

    def get(
        self,
        instance_id: str,
        *,
        fields: Iterable[str] = (),
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> pb.GetInstanceResponse:
        """One instance. Raises HqApiError NOT_FOUND if there is none."""
        return self._run(ReadCalls.get, instance_id, fields=fields, read=read, timeout_s=timeout_s)

    def find(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        fields: Iterable[str] = (),
        page_size: int = 0,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[pb.FindInstancesResponse]:
        """The instances that pass a filter, page by page, in order of their ids.

        Each page has `timeout_s` of its own. Pages are read one after the other, so they are of different
        versions: what is changed meanwhile may be missing or old. Watch if that matters.
        """
        return self._iterate(ReadCalls.find, where, fields=fields, page_size=page_size, read=read, timeout_s=timeout_s)

    def count(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        by: pb.CountGroup = pb.COUNT_GROUP_UNSPECIFIED,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> pb.CountInstancesResponse:
        """How many instances pass a filter and how many of those are ready, by service, node or revision."""
        return self._run(ReadCalls.count, where, by=by, read=read, timeout_s=timeout_s)

    def silences(
        self,
        where: pb.InstanceFilter | None = None,
        *,
        page_size: int = 0,
        read: pb.ReadOptions | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[pb.ListSilencesResponse]:
        """How long ago the instances that pass a filter were last heard from, page by page, in order of their ids.

        Each page has `timeout_s` of its own.
        """
        return self._iterate(ReadCalls.silences, where, page_size=page_size, read=read, timeout_s=timeout_s)

    def get_revision(
        self, instance_id: str, revision_id: str = "", *, node: str = "", timeout_s: float | None = None
    ) -> pb.GetRevisionResponse:
        """Get what has to run, with secret descriptors; no revision_id: all revisions.

        Agents name their own `node`: an instance on another node is refused. Deploy systems name none.
        """
        return self._run(ReadCalls.get_revision, instance_id, revision_id, node=node, timeout_s=timeout_s)

    def explain(self, instance_id: str, *, timeout_s: float | None = None) -> pb.ExplainInstanceResponse:
        """Why an instance is ready or not, as the answering replica sees it."""
        return self._run(ReadCalls.explain, instance_id, timeout_s=timeout_s)
