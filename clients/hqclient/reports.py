"""Calls of agents: who reports, and what they report."""

from __future__ import annotations

from collections.abc import Sequence

from hqclient.calls import Caller
from hqclient.retry import Safety
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


class ReportCalls(Caller):
    """Reports are repeated after an unknown outcome: incarnation and sequence make a repeat harmless.

    FAILED_PRECONDITION means stop: WRONG_NODE, WRONG_UID, UNKNOWN_REVISION, FENCED (another reporter took
    over). NOT_BEGUN means: call `begin_reporting` again.
    """

    async def begin_reporting(
        self, instance_id: str, revision_id: str, *, node: str, timeout_s: float | None = None
    ) -> pb.BeginReportingResponse:
        """Become the one reporter of a revision; any earlier one is told to stop.

        Not repeated after an unknown outcome: a delayed first try would invalidate the second one's incarnation. Call
        it again.
        """
        request = pb.BeginReportingRequest(instance_id=instance_id, revision_id=revision_id, node=node)
        return await self.call(lambda hq: hq.instances.BeginReporting, request, timeout_s=timeout_s)

    async def begin_many(
        self, begin: Sequence[pb.BeginReportingRequest], *, timeout_s: float | None = None
    ) -> pb.BeginReportingsResponse:
        """The same for at most 1,000 revisions: one result per item, in order. Look at each `error`."""
        request = pb.BeginReportingsRequest(begin=begin)
        return await self.call(lambda hq: hq.instances.BeginReportings, request, timeout_s=timeout_s)

    async def report(
        self,
        instance_id: str,
        revision: instance_pb2.RevisionStatus,
        *,
        uid: int,
        node: str,
        unsettled: bool = False,
        timeout_s: float | None = None,
    ) -> pb.ReportStatusResponse:
        """Report the full status of one revision, with the incarnation that begin_reporting gave.

        Args:
            uid: the instance's, from begin_reporting or get_revision.
            unsettled: an earlier report with different content is still unanswered.
        """
        request = pb.ReportStatusRequest(
            instance_id=instance_id, uid=uid, node=node, revision=revision, unsettled=unsettled
        )
        return await self.call(
            lambda hq: hq.instances.ReportStatus, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )

    async def report_many(
        self, reports: Sequence[pb.ReportStatusRequest], *, timeout_s: float | None = None
    ) -> pb.ReportStatusesResponse:
        """The same as `report` for at most 1,000 revisions: one result per item, in order. Look at each `error`."""
        request = pb.ReportStatusesRequest(report=reports)
        return await self.call(
            lambda hq: hq.instances.ReportStatuses, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )
