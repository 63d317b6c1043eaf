"""The calls of hqclient.writes, to wait for. Made by tools/gen_sync_client.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hqclient.sync.caller import SyncCaller
from hqclient.writes import WriteCalls
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


class SyncWriteCalls(SyncCaller):
    """As hqclient.writes.WriteCalls."""

    def create(
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
        return self._run(
            WriteCalls.create, instance, request_id=request_id, validate_only=validate_only, timeout_s=timeout_s
        )

    def update(
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
        return self._run(
            WriteCalls.update,
            instance,
            fields=fields,
            epoch=epoch,
            service=service,
            validate_only=validate_only,
            timeout_s=timeout_s,
        )

    def delete(
        self, instance_id: str, *, version: int = 0, epoch: str = "", service: str = "", timeout_s: float | None = None
    ) -> pb.DeleteInstanceResponse:
        """Remove an instance with its secrets and status; NOT_FOUND if there is none."""
        return self._run(
            WriteCalls.delete, instance_id, version=version, epoch=epoch, service=service, timeout_s=timeout_s
        )

    def apply(
        self,
        instances: Sequence[instance_pb2.Instance],
        *,
        epoch: str = "",
        service: str = "",
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> pb.ApplyInstancesResponse:
        """Create or replace instances, each independently: one result per item, in order; see its `error`."""
        return self._run(
            WriteCalls.apply, instances, epoch=epoch, service=service, validate_only=validate_only, timeout_s=timeout_s
        )

    def put_revision(
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
        return self._run(
            WriteCalls.put_revision,
            instance_id,
            revision,
            version=version,
            epoch=epoch,
            service=service,
            clear_secrets=clear_secrets,
            validate_only=validate_only,
            timeout_s=timeout_s,
        )

    def delete_revision(
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
        return self._run(
            WriteCalls.delete_revision,
            instance_id,
            revision_id,
            version=version,
            epoch=epoch,
            service=service,
            timeout_s=timeout_s,
        )
