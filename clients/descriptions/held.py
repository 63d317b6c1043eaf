"""An instance as HQ holds it, as FindInstances answered. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hqcli.instances import without_what_hq_sets
from hqpb.v1 import instance_pb2


@dataclass(frozen=True, slots=True)
class HeldInstance:
    """One instance as HQ holds it.

    Attributes:
        instance: meta.version is the precondition of a write; without HQ's own fields. Its revisions hold secret
            descriptors only if `knows_secrets`.
        epoch: the one that the version belongs to.
        secret_counts: descriptors by revision, as HQ counts them.
        knows_secrets: the descriptors were read too.
    """

    instance: instance_pb2.Instance
    epoch: str
    secret_counts: dict[str, int]
    knows_secrets: bool

    @property
    def id(self) -> str:
        """The instance's id."""
        return self.instance.meta.id

    def with_secrets(self, revisions: Iterable[instance_pb2.InstanceRevision]) -> HeldInstance:
        """The same instance, with the secret descriptors of these revisions."""
        told = {revision.id: revision for revision in revisions}
        full = instance_pb2.Instance()
        full.CopyFrom(self.instance)
        for revision in full.spec.revision:
            revision.secret.extend(told[revision.id].secret if revision.id in told else ())
        return HeldInstance(full, self.epoch, self.secret_counts, knows_secrets=True)


def held_instance(instance: instance_pb2.Instance, epoch: str) -> HeldInstance:
    """One instance of a FindInstances response."""
    counts = {revision.id: revision.secret_count for revision in instance.spec.revision}
    copy = instance_pb2.Instance()
    copy.CopyFrom(instance)
    return HeldInstance(without_what_hq_sets(copy), epoch, counts, knows_secrets=not any(counts.values()))
