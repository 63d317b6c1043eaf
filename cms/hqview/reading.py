"""An instance as HQ sends it, read for the ledger."""

from __future__ import annotations

from cms.ledger.instances import Instance, InstanceKey
from hqpb.v1 import instance_pb2

_READY = {instance_pb2.CONDITION_STATUS_TRUE: True, instance_pb2.CONDITION_STATUS_FALSE: False}


def ledger_instance(
    location: str, message: instance_pb2.Instance, before: Instance | None, *, is_new: bool
) -> Instance:
    """The instance for the ledger.

    Args:
        before: the same instance (by its uid) as it was known.
        is_new: it appeared while the location was followed.
    """
    meta, ready, agent = message.meta, message.status.ready, message.status.agent
    is_ready = _READY.get(ready.status)
    return Instance(
        InstanceKey(location, meta.id),
        meta.service_id,
        message.spec.node_name,
        is_wanted=any(r.target == instance_pb2.REVISION_TARGET_READY for r in message.spec.revision),
        is_ready=is_ready,
        was_ready=bool(is_ready)
        or (_was_ready(message, is_ready, is_new=is_new) if before is None else before.was_ready),
        cluster=meta.cluster,
        labels=dict(meta.labels),
        reason=": ".join(filter(None, (ready.reason, ready.message))),
        is_silent=agent.status == instance_pb2.CONDITION_STATUS_FALSE and agent.reason != "NeverReported",
        uid=meta.uid,
    )


def _was_ready(message: instance_pb2.Instance, is_ready: bool | None, *, is_new: bool) -> bool:
    """Whether an instance that is not ready now was ready before this process followed it.

    HQ does not record that. An instance neither reported nor changed since its creation never was;
    any other is assumed to have been, so that a restart of the CMS lowers no floor.
    """
    if is_new:
        return False
    is_untouched = message.meta.modification_time == message.meta.creation_time
    return not (is_ready is None and is_untouched)
