"""Calls that change the desired state: for deploy systems, schedulers and people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hqclient.calls import Caller, mask, repeatable_if
from hqclient.retry import Safety
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


class WriteCalls(Caller):
    """Writes are sent again only if the first try surely stored nothing.

    A precondition is the `version` that was read (0: none), the `epoch` it belongs to (from the answer's sources;
    empty: not checked), and the `service` that the instance belongs to (empty: not checked; if it belongs to another,
    the reason is WRONG_SERVICE). Every method raises HqApiError: `current_version` on a conflict,
    `violations` for a faulty request, `outcome_unknown` if the write may have been stored nevertheless.
    """

    async def create(
        self,
        instance: instance_pb2.Instance,
        *,
        request_id: str = "",
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> pb.CreateInstanceResponse:
        """Store a new instance; ALREADY_EXISTS if the id is taken.

        It is repeated even after an unknown outcome: if you give no `request_id`, one is generated for this
        call. A repeat returns the instance as it is then, which others may have changed meanwhile.
        """
        word = request_id or f"{self._rng.getrandbits(128):032x}"
        request = pb.CreateInstanceRequest(instance=instance, request_id=word, validate_only=validate_only)
        answer = await self.call(
            lambda hq: hq.instances.CreateInstance, request, safety=Safety.REPEATABLE, timeout_s=timeout_s
        )
        self._wrote(answer.instance.meta.version, answer.instance.meta.cluster)
        return answer

    async def update(
        self,
        instance: instance_pb2.Instance,
        *,
        fields: Iterable[str] = (),
        epoch: str = "",
        service: str = "",
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> pb.UpdateInstanceResponse:
        """Replace the parts of meta and spec named by `fields`; the precondition is instance.meta.version.

        Without `fields`: everything that deploy systems write, and allocation, node_name and weight if they are set.
        """
        request = pb.UpdateInstanceRequest(
            instance=instance,
            update_mask=mask(fields),
            epoch=epoch,
            service_id=service,
            validate_only=validate_only,
        )
        answer = await self.call(
            lambda hq: hq.instances.UpdateInstance,
            request,
            safety=repeatable_if(validate_only),
            timeout_s=timeout_s,
        )
        self._wrote(answer.instance.meta.version, answer.instance.meta.cluster)
        return answer

    async def delete(
        self, instance_id: str, *, version: int = 0, epoch: str = "", service: str = "", timeout_s: float | None = None
    ) -> pb.DeleteInstanceResponse:
        """Remove an instance with its secrets and status; NOT_FOUND if there is none."""
        request = pb.DeleteInstanceRequest(id=instance_id, version=version, epoch=epoch, service_id=service)
        answer = await self.call(lambda hq: hq.instances.DeleteInstance, request, timeout_s=timeout_s)
        self._wrote(answer.version)
        return answer

    async def apply(
        self,
        instances: Sequence[instance_pb2.Instance],
        *,
        epoch: str = "",
        service: str = "",
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> pb.ApplyInstancesResponse:
        """Create or replace instances, each independently: one result per item, in order; see its `error`."""
        request = pb.ApplyInstancesRequest(
            instance=instances, epoch=epoch, service_id=service, validate_only=validate_only
        )
        answer = await self.call(
            lambda hq: hq.instances.ApplyInstances,
            request,
            safety=repeatable_if(validate_only),
            timeout_s=timeout_s,
        )
        self._wrote(max((result.version for result in answer.result), default=0))
        return answer

    async def put_revision(
        self,
        instance_id: str,
        revision: instance_pb2.InstanceRevision,
        *,
        version: int = 0,
        epoch: str = "",
        service: str = "",
        clear_secrets: bool = False,
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> pb.PutRevisionResponse:
        """Add a revision, or replace the one of the same id. Absent secret descriptors: unchanged."""
        request = pb.PutRevisionRequest(
            instance_id=instance_id,
            revision=revision,
            version=version,
            epoch=epoch,
            service_id=service,
            update_mask=mask(["secret"] if clear_secrets else []),
            validate_only=validate_only,
        )
        answer = await self.call(
            lambda hq: hq.instances.PutRevision,
            request,
            safety=repeatable_if(validate_only),
            timeout_s=timeout_s,
        )
        self._wrote(answer.instance.meta.version, answer.instance.meta.cluster)
        return answer

    async def delete_revision(
        self,
        instance_id: str,
        revision_id: str,
        *,
        version: int = 0,
        epoch: str = "",
        service: str = "",
        timeout_s: float | None = None,
    ) -> pb.DeleteRevisionResponse:
        """Remove a revision with its status and secrets."""
        request = pb.DeleteRevisionRequest(
            instance_id=instance_id, revision_id=revision_id, version=version, epoch=epoch, service_id=service
        )
        answer = await self.call(lambda hq: hq.instances.DeleteRevision, request, timeout_s=timeout_s)
        self._wrote(answer.instance.meta.version, answer.instance.meta.cluster)
        return answer
