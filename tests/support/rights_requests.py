"""Instances and requests for tests about rights."""

from __future__ import annotations

from collections.abc import Sequence

from hqpb.v1 import instance_pb2 as i
from hqpb.v1 import service_pb2 as pb
from tests.support import canary

SECRET_KEY = "canary-7f3a"


def instance(name: str, service: str = "web", node: str = "n1", revisions: Sequence[str] = ("r1",)) -> i.Instance:
    """An instance whose revisions have a secret descriptor each."""
    made = i.Instance(meta=i.InstanceMeta(id=name, service_id=service), spec=i.InstanceSpec(node_name=node))
    made.spec.revision.extend(revision(one, service) for one in revisions)
    return made


def revision(name: str, service: str = "web") -> i.InstanceRevision:
    """A revision with one secret descriptor."""
    descriptor = i.SecretDescriptor(
        name="db", provider="vault", id=f"{service}/{name}-{canary.keep(SECRET_KEY)}", environment_variable="PASSWORD"
    )
    return i.InstanceRevision(id=name, target=i.REVISION_TARGET_READY, secret=[descriptor])


def create(name: str, service: str = "web", node: str = "n1") -> pb.CreateInstanceRequest:
    """The request for it."""
    return pb.CreateInstanceRequest(instance=instance(name, service, node))


def report(name: str, node: str, incarnation: int = 0, sequence: int = 1) -> pb.ReportStatusRequest:
    """That revision r1 is ready."""
    condition = i.Condition(status=i.CONDITION_STATUS_TRUE, reason="Started")
    status = i.RevisionStatus(id="r1", ready=condition, incarnation=incarnation, sequence=sequence)
    return pb.ReportStatusRequest(instance_id=name, node=node, revision=status)
