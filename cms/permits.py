"""Who may ask for what: a task's hosts and instances, and a budget's service, against the caller's reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cms.ledger.instances import InstanceKey
from cms.ledger.picture import Picture
from cmspb.storage.v1 import ledger_pb2
from serving.calls.methods import Call
from serving.rights.access import OUTSIDE, READERS, Access
from serving.rights.patterns import IdentityPattern


def owner_of(call: Call) -> str:
    """The owner of a caller's tasks; empty without security."""
    identity = call.access.identity
    return identity.name if identity is not None else ""


def check_task_reach(access: Access, task: ledger_pb2.Task, picture: Picture) -> None:
    """Raises PermissionDenied unless all that a task takes down is within reach."""
    if access.is_unlimited:
        return
    for host in task.host:
        access.check_node(host, READERS, "hosts")
    for one in task.instance:
        instance = picture.instances.get(InstanceKey(one.location, one.id))
        if instance is None:
            access.deny(f"instance {one.id}", key=one.id, scope="is not known to the CMS")
        access.check(one.id, instance.service, instance.host)


def check_issuer(access: Access, issuer: str, issuers: Mapping[str, Collection[IdentityPattern]]) -> None:
    """Raises PermissionDenied: the CMS's configuration lets other identities speak for this issuer."""
    if issuer not in issuers or access.identity is None:
        return
    if all(pattern.match(access.identity.name) is None for pattern in issuers[issuer]):
        access.deny(f"issuer {issuer}", key=issuer, scope="is bound to other identities: see --task-issuer of the CMS")


def check_budget_reach(access: Access, service: str, name: str) -> None:
    """Raises PermissionDenied unless all that a budget selects is within reach."""
    if not access.is_unlimited and not (service and access.covers(service, "")):
        access.deny(f"budget {name}", key=name, scope=f"{OUTSIDE} (its service)")
