"""The wanted state of an instance, by HQ, a file or the last good copy on disk; and a key for each content of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from google.protobuf import json_format

from hqclient.allocations import restarting_part
from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Container, InstanceRevision, ResourceAllocation
from instancectl.files import write_atomically


@dataclass(frozen=True, slots=True, order=True)
class RevisionContentKey:
    """A revision with a certain content. Changed files or hooks under the same id make another key."""

    id: str
    digest: str

    def __str__(self) -> str:
        return self.id


def revision_key(revision: InstanceRevision, allocation: ResourceAllocation) -> RevisionContentKey:
    """A key that covers all that preparing depends on, but neither the target nor the processes to run."""
    content = InstanceRevision()
    content.CopyFrom(revision)
    for name in ("target", "container", "secret_count"):
        content.ClearField(name)
    place = ResourceAllocation(port=allocation.port, host=allocation.host)
    for disk in allocation.disk:
        place.disk.add(name=disk.name, path=disk.path)
    return RevisionContentKey(revision.id, _digest(content, place))


def container_digest(container: Container, allocation: ResourceAllocation) -> str:
    """A digest of all that a running process depends on: if it changes, the process must be restarted."""
    return _digest(container, restarting_part(allocation))


def former_container_digest(container: Container, allocation: ResourceAllocation) -> str:
    """The digest that earlier versions recorded: with fields of the allocation that restart nothing."""
    return _digest(container, allocation)


def _digest(*messages: InstanceRevision | ResourceAllocation | Container) -> str:
    # The length goes in too, so that bytes cannot shift from one message to the next unnoticed.
    digest = hashlib.sha256()
    for message in messages:
        encoded = message.SerializeToString(deterministic=True)
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


@dataclass(frozen=True)
class Desired:
    """The wanted state.

    Attributes:
        uid: of the instance, a new one when it is recreated; 0 if it comes from a file.
        version: meta.version of the spec in HQ; 0 if it comes from a file.
        epoch: the history of HQ's store that uid and version belong to.
        service: of the instance, for providers of secrets; empty: not known.
    """

    instance_id: str
    node: str
    revisions: tuple[InstanceRevision, ...] = ()
    allocation: ResourceAllocation = field(default_factory=ResourceAllocation)
    uid: int = 0
    version: int = 0
    epoch: str = ""
    service: str = ""

    @cached_property
    def by_key(self) -> Mapping[RevisionContentKey, InstanceRevision]:
        """The revisions, the one wanted READY first."""
        ordered = sorted(self.revisions, key=lambda revision: not is_wanted_ready(revision))
        return {revision_key(revision, self.allocation): revision for revision in ordered}

    @cached_property
    def held_keys(self) -> tuple[RevisionContentKey, ...]:
        """The revisions that the node shall hold, the one wanted READY first."""
        return tuple(key for key, revision in self.by_key.items() if not is_wanted_created(revision))

    @cached_property
    def ready_key(self) -> RevisionContentKey | None:
        """The revision to run; None: nothing shall run."""
        return next((key for key, revision in self.by_key.items() if is_wanted_ready(revision)), None)

    def key_of(self, revision_id: str) -> RevisionContentKey | None:
        """The wanted content of a revision; None: the revision is not wanted."""
        return next((key for key in self.by_key if key.id == revision_id), None)

    @property
    def host(self) -> str:
        """The instance's own name or address, for checks and for its processes."""
        return self.allocation.host or "127.0.0.1"

    def port(self, name: str) -> int | None:
        """The number of a named port; None: none was allocated."""
        return next((port.number for port in self.allocation.port if port.name == name), None)


def is_wanted_created(revision: InstanceRevision) -> bool:
    """Whether a revision is only described: the node shall hold nothing of it."""
    return revision.target == instance_pb2.REVISION_TARGET_CREATED


def is_wanted_ready(revision: InstanceRevision) -> bool:
    return revision.target == instance_pb2.REVISION_TARGET_READY


def from_instance(instance: instance_pb2.Instance, node: str = "") -> Desired:
    """Read the wanted state of an instance from a file. `node` is used where the file names none."""
    spec = instance.spec
    service = instance.meta.service_id
    return Desired(instance.meta.id, spec.node_name or node, tuple(spec.revision), spec.allocation, service=service)


def save(path: Path, desired: Desired) -> None:
    """Keep a good copy, readable by nobody else."""
    instance = instance_pb2.Instance()
    instance.meta.id, instance.meta.uid, instance.meta.version = desired.instance_id, desired.uid, desired.version
    instance.meta.service_id, instance.spec.node_name = desired.service, desired.node
    instance.spec.allocation.CopyFrom(desired.allocation)
    instance.spec.revision.extend(desired.revisions)
    document = {"epoch": desired.epoch, "instance": json_format.MessageToDict(instance)}
    write_atomically(path, json.dumps(document, indent=1).encode())


def load(path: Path) -> Desired | None:
    """The last good copy; None if there is none, or none that can be read."""
    try:
        document = json.loads(path.read_text())
        instance = json_format.ParseDict(document["instance"], instance_pb2.Instance(), ignore_unknown_fields=True)
    except (OSError, ValueError, KeyError, TypeError, json_format.ParseError):
        return None
    meta = instance.meta
    spec = instance.spec
    revisions = tuple(spec.revision)
    place = meta.id, spec.node_name, revisions, spec.allocation
    return Desired(*place, meta.uid, meta.version, document["epoch"], meta.service_id)
