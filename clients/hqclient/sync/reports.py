"""The calls of hqclient.reports, to wait for. Made by tools/gen_sync_client.py."""

from __future__ import annotations

from collections.abc import Sequence

from hqclient.reports import ReportCalls
from hqclient.sync.caller import SyncCaller
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


class SyncReportCalls(SyncCaller):
    """As hqclient.reports.ReportCalls."""

    def begin_reporting(
        self, instance_id: str, revision_id: str, *, node: str, timeout_s: float | None = None
    ) -> pb.BeginReportingResponse:
        """Become the one reporter of a revision; any earlier one is told to stop.

        Not repeated after an unknown outcome: a delayed first try would invalidate the second one's incarnation. Call
        it again.
        """
        return self._run(ReportCalls.begin_reporting, instance_id, revision_id, node=node, timeout_s=timeout_s)

    def begin_many(
        self, begin: Sequence[pb.BeginReportingRequest], *, timeout_s: float | None = None
    ) -> pb.BeginReportingsResponse:
        """The same for at most 1,000 revisions: one result per item, in order. Look at each `error`."""
        return self._run(ReportCalls.begin_many, begin, timeout_s=timeout_s)

    def report(
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
        return self._run(
            ReportCalls.report, instance_id, revision, uid=uid, node=node, unsettled=unsettled, timeout_s=timeout_s
        )

    def report_many(
        self, reports: Sequence[pb.ReportStatusRequest], *, timeout_s: float | None = None
    ) -> pb.ReportStatusesResponse:
        """The same as `report` for at most 1,000 revisions: one result per item, in order. Look at each `error`."""
        return self._run(ReportCalls.report_many, reports, timeout_s=timeout_s)
