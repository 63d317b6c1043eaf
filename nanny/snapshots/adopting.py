"""The snapshot content for a service that already runs: what HQ holds, so that nothing changes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from descriptions.held import held_instance
from hqpb.v1.instance_pb2 import Instance, InstanceRevision, ResourceAllocation
from nanny.rollout.views import Key
from nanny.snapshots.content import Content, read_content
from nanny.snapshots.wanted import OWNER, READY, switched_instance
from serving.errors import InvalidRequest, Violation


def adopted_content(service: str, instances: Mapping[Key, Instance]) -> tuple[Content, bytes]:
    """The content and its text; the snapshot gets the id of the revision that runs everywhere.

    Raises:
        InvalidRequest: with every instance that keeps the service from being adopted.
    """
    if not instances:
        raise InvalidRequest(Violation("adopt", f"HQ holds no instance of {service}"))
    running = {key: _running(instance) for key, instance in sorted(instances.items())}
    common = next((one for one in running.values() if one is not None), InstanceRevision())
    _complain(_unlike(instances, running, common))
    text = json.dumps(_value(service, instances, common)).encode()
    content = read_content(
        service,
        text,
        {location for location, _ in instances},
        as_id=common.id,
        revision_id=common.id,
        was_accepted=True,  # it runs: no bound of what is uploaded holds for it
    )
    _complain(
        f"cannot adopt {name} ({location}): the generated snapshot does not reproduce it; this is a bug in Nanny, "
        "nothing was changed"
        for (location, name), instance in instances.items()
        if switched_instance(content, (location, name), held_instance(instance, ""), "") is not None
    )
    return content, text


def _complain(faults: Iterator[str]) -> None:
    """Raises InvalidRequest."""
    if found := [Violation("adopt", fault) for fault in faults]:
        raise InvalidRequest(*found)


def _unlike(
    instances: Mapping[Key, Instance], running: Mapping[Key, InstanceRevision | None], common: InstanceRevision
) -> Iterator[str]:
    for key, revision in running.items():
        name = f"{key[1]} ({key[0]})"
        if OWNER in instances[key].meta.annotations:
            yield f"{name} is already managed by a Nanny"
        elif revision is None:
            yield f"{name} has no READY revision: activate one, or delete the instance"
        elif revision.id != common.id:
            yield f"{name} runs {revision.id}, others {common.id}: activate one of them everywhere first"
        elif revision != common:
            yield f"{name} has different content in {revision.id} than the others: upload it again first"


def _running(instance: Instance) -> InstanceRevision | None:
    return next((revision for revision in instance.spec.revision if revision.target == READY), None)


def _value(service: str, instances: Mapping[Key, Instance], revision: InstanceRevision) -> dict[str, Any]:
    definition = MessageToDict(revision)
    for name in ("target", "secretCount"):
        definition.pop(name, None)
    placed = [_instance(location, one) for (location, _), one in sorted(instances.items())]
    value: dict[str, Any] = {"service": service, "instances": placed, "revisions": [definition]}
    first = next(iter(instances.values())).spec
    if first.HasField("liveness") and all(one.spec.liveness == first.liveness for one in instances.values()):
        value["liveness"] = MessageToDict(first.liveness)
    return value


def _instance(location: str, instance: Instance) -> dict[str, Any]:
    spec = instance.spec
    value: dict[str, Any] = {"id": instance.meta.id, "installation": location}
    if spec.node_name:
        value["node"] = spec.node_name
    if instance.meta.labels:
        value["labels"] = dict(instance.meta.labels)
    if spec.HasField("allocation"):
        value["allocation"] = _allocation(spec.allocation)
    return value


def _allocation(allocation: ResourceAllocation) -> dict[str, Any]:
    value: dict[str, Any] = MessageToDict(allocation)
    if ports := value.pop("port", []):
        value["ports"] = {port["name"]: port["number"] for port in ports}
    return value
