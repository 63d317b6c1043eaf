"""What a revision is made of, in a few letters: whether something has to be prepared or started anew. No I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hqpb.v1.instance_pb2 import Container, InstanceRevision, ResourceAllocation


@dataclass(frozen=True, slots=True, order=True)
class RevisionKey:
    """A revision with a certain content. Changed files or hooks under the same id make another key."""

    id: str
    digest: str

    def __str__(self) -> str:
        return self.id


def revision_key(revision: InstanceRevision, allocation: ResourceAllocation) -> RevisionKey:
    """Covers all that preparing depends on; not the target, and not the processes to run."""
    content = InstanceRevision()
    content.CopyFrom(revision)
    for field in ("target", "container", "secret_count"):
        content.ClearField(field)
    place = ResourceAllocation(port=allocation.port, host=allocation.host)
    for disk in allocation.disk:
        place.disk.add(name=disk.name, path=disk.path)
    return RevisionKey(revision.id, _digest(content, place))


def section_digest(container: Container, allocation: ResourceAllocation) -> str:
    """Covers all that a running process depends on: another digest, and it must be started anew."""
    return _digest(container, allocation)


def _digest(*messages: InstanceRevision | ResourceAllocation | Container) -> str:
    # The length goes in too, so that bytes cannot wander from one message to the next.
    digest = hashlib.sha256()
    for message in messages:
        encoded = message.SerializeToString(deterministic=True)
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
