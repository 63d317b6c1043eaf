"""The calls of hqclient.admin, to wait for. Made by tools/gen_sync_client.py."""

from __future__ import annotations

from hqclient.admin import AdminCalls
from hqclient.sync.caller import SyncCaller
from hqpb.v1 import admin_pb2 as pb


class SyncAdminCalls(SyncCaller):
    """As hqclient.admin.AdminCalls."""

    def get_guard(self, *, timeout_s: float | None = None) -> pb.GetGuardResponse:
        """Return the state of the answering replica's guard, and why it holds."""
        return self._run(AdminCalls.get_guard, timeout_s=timeout_s)

    def release_guard(
        self, *, by: str, reason: str, duration_s: float | None = None, timeout_s: float | None = None
    ) -> pb.ReleaseGuardResponse:
        """Let expiries through for a while, whatever the share of silent revisions."""
        return self._run(AdminCalls.release_guard, by=by, reason=reason, duration_s=duration_s, timeout_s=timeout_s)

    def force_guard(
        self, *, by: str, reason: str, duration_s: float | None = None, timeout_s: float | None = None
    ) -> pb.ForceGuardResponse:
        """Hold all expiries for a while."""
        return self._run(AdminCalls.force_guard, by=by, reason=reason, duration_s=duration_s, timeout_s=timeout_s)

    def get_epoch(self, *, timeout_s: float | None = None) -> pb.GetEpochResponse:
        """Whether the store's contents are trusted, as the answering replica sees it."""
        return self._run(AdminCalls.get_epoch, timeout_s=timeout_s)

    def confirm_epoch(
        self, epoch: str, *, by: str, reason: str, timeout_s: float | None = None
    ) -> pb.ConfirmEpochResponse:
        """Confirm that the store is complete, however little it holds, so that readers trust it."""
        return self._run(AdminCalls.confirm_epoch, epoch, by=by, reason=reason, timeout_s=timeout_s)

    def list_replicas(self, *, timeout_s: float | None = None) -> pb.ListReplicasResponse:
        """The replicas heard from lately, and the store's members."""
        return self._run(AdminCalls.list_replicas, timeout_s=timeout_s)

    def list_quarantine(self, *, timeout_s: float | None = None) -> pb.ListQuarantineResponse:
        """Records that the answering replica could not decode."""
        return self._run(AdminCalls.list_quarantine, timeout_s=timeout_s)

    def list_transitions(
        self, instance_id: str = "", *, page_size: int = 0, timeout_s: float | None = None
    ) -> pb.ListTransitionsResponse:
        """Recent expiries and recoveries with the decisions behind them, newest first."""
        return self._run(AdminCalls.list_transitions, instance_id, page_size=page_size, timeout_s=timeout_s)

    def suspend_node(
        self, node_name: str, *, duration_s: float, by: str, reason: str, timeout_s: float | None = None
    ) -> pb.SuspendNodeResponse:
        """Planned work: no revision of this node counts as silent for `duration_s` seconds."""
        return self._run(
            AdminCalls.suspend_node, node_name, duration_s=duration_s, by=by, reason=reason, timeout_s=timeout_s
        )

    def resume_node(self, node_name: str, *, timeout_s: float | None = None) -> pb.ResumeNodeResponse:
        """End planned work early."""
        return self._run(AdminCalls.resume_node, node_name, timeout_s=timeout_s)

    def list_suspensions(self, *, timeout_s: float | None = None) -> pb.ListSuspensionsResponse:
        """The nodes under planned work."""
        return self._run(AdminCalls.list_suspensions, timeout_s=timeout_s)
