"""Instances of one service in each of three locations, and questions for them."""

from __future__ import annotations

from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors
from tests.federated.federated_process import FederatedProcess
from tests.federated.worlds import NAMES
from tests.support.sample_instances import instance

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


def create(instance_id: str, cluster: str, service: str) -> pb.CreateInstanceRequest:
    made = instance(instance_id, service)
    made.meta.cluster = cluster
    return pb.CreateInstanceRequest(instance=made)


def of_service(service: str, **more: object) -> pb.FindInstancesRequest:
    return pb.FindInstancesRequest(filter=pb.InstanceFilter(service_id=[service]), **more)  # type: ignore[arg-type]


async def fill(gateway: FederatedProcess, service: str) -> None:
    """One instance of this service in each location."""
    async with gateway.stub() as stub:
        for name in NAMES:
            await stub.CreateInstance(create(f"{service}-{name}", name, service))


async def whole(gateway: FederatedProcess, service: str) -> bool:
    """Whether every location answers without an error."""
    async with gateway.stub() as stub:
        answer = await stub.FindInstances(of_service(service, read=STRONG))
        return len(answer.instances) == 3 and not any(errors(answer.sources).values())
