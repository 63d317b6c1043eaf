"""Calls of operators."""

from __future__ import annotations

from hqclient.calls import Caller, duration
from hqclient.retry import Safety
from hqpb.v1 import admin_pb2 as pb


class AdminCalls(Caller):
    """Operators' questions and orders. HQ records orders with `by` and `reason`."""

    async def get_guard(self, *, timeout_s: float | None = None) -> pb.GetGuardResponse:
        """Return the state of the answering replica's guard, and why it holds."""
        return await self.call(
            lambda hq: hq.admin.GetGuard,
            pb.GetGuardRequest(),
            safety=Safety.REPEATABLE,
            timeout_s=timeout_s,
        )

    async def release_guard(
        self, *, by: str, reason: str, duration_s: float | None = None, timeout_s: float | None = None
    ) -> pb.ReleaseGuardResponse:
        """Let expiries through for a while, whatever the share of silent revisions."""
        request = pb.ReleaseGuardRequest(duration=duration(duration_s), reason=reason, by=by)
        return await self.call(lambda hq: hq.admin.ReleaseGuard, request, timeout_s=timeout_s)

    async def force_guard(
        self, *, by: str, reason: str, duration_s: float | None = None, timeout_s: float | None = None
    ) -> pb.ForceGuardResponse:
        """Hold all expiries for a while."""
        request = pb.ForceGuardRequest(duration=duration(duration_s), reason=reason, by=by)
        return await self.call(lambda hq: hq.admin.ForceGuard, request, timeout_s=timeout_s)

    async def get_epoch(self, *, timeout_s: float | None = None) -> pb.GetEpochResponse:
        """Whether the store's contents are trusted, as the answering replica sees it."""
        request = pb.GetEpochRequest()
        return await self.call(lambda hq: hq.admin.GetEpoch, request, safety=Safety.REPEATABLE, timeout_s=timeout_s)

    async def confirm_epoch(
        self, epoch: str, *, by: str, reason: str, timeout_s: float | None = None
    ) -> pb.ConfirmEpochResponse:
        """Confirm that the store is complete, however little it holds, so that readers trust it."""
        request = pb.ConfirmEpochRequest(epoch=epoch, reason=reason, by=by)
        return await self.call(lambda hq: hq.admin.ConfirmEpoch, request, safety=Safety.REPEATABLE, timeout_s=timeout_s)

    async def list_replicas(self, *, timeout_s: float | None = None) -> pb.ListReplicasResponse:
        """The replicas heard from lately, and the store's members."""
        return await self.call(
            lambda hq: hq.admin.ListReplicas,
            pb.ListReplicasRequest(),
            safety=Safety.REPEATABLE,
            timeout_s=timeout_s,
        )

    async def list_quarantine(self, *, timeout_s: float | None = None) -> pb.ListQuarantineResponse:
        """Records that the answering replica could not decode."""
        return await self.call(
            lambda hq: hq.admin.ListQuarantine,
            pb.ListQuarantineRequest(),
            safety=Safety.REPEATABLE,
            timeout_s=timeout_s,
        )

    async def list_transitions(
        self, instance_id: str = "", *, page_size: int = 0, timeout_s: float | None = None
    ) -> pb.ListTransitionsResponse:
        """Recent expiries and recoveries with the decisions behind them, newest first."""
        request = pb.ListTransitionsRequest(instance_id=instance_id, page_size=page_size)
        return await self.call(
            lambda hq: hq.admin.ListTransitions, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )

    async def suspend_node(
        self, node_name: str, *, duration_s: float, by: str, reason: str, timeout_s: float | None = None
    ) -> pb.SuspendNodeResponse:
        """Planned work: no revision of this node counts as silent for `duration_s` seconds."""
        request = pb.SuspendNodeRequest(node_name=node_name, duration=duration(duration_s), reason=reason, by=by)
        return await self.call(lambda hq: hq.admin.SuspendNode, request, timeout_s=timeout_s)

    async def resume_node(self, node_name: str, *, timeout_s: float | None = None) -> pb.ResumeNodeResponse:
        """End planned work early."""
        request = pb.ResumeNodeRequest(node_name=node_name)
        return await self.call(lambda hq: hq.admin.ResumeNode, request, timeout_s=timeout_s)

    async def list_suspensions(self, *, timeout_s: float | None = None) -> pb.ListSuspensionsResponse:
        """The nodes under planned work."""
        return await self.call(
            lambda hq: hq.admin.ListSuspensions,
            pb.ListSuspensionsRequest(),
            safety=Safety.REPEATABLE,
            timeout_s=timeout_s,
        )
