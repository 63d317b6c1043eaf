"""A call can be followed: from whoever sends it, over a gateway, to the replica, its log and the record in etcd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2 as pb
from store.etcd import EtcdConfig, EtcdStore
from tests.federated.federated_process import FederatedProcess, write_config
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)


def lines_of(replica: ReplicaProcess) -> list[dict[str, Any]]:
    """Its log so far; the last line may be half written."""
    return [json.loads(line) for line in replica.log_text().split("\n")[:-1]]


@pytest.mark.long
async def test_json_logs_are_json_from_the_first_line_to_the_last(replicas: Replicas, etcd: SharedEtcd) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--log-format", "json", until_ready=False)
    await eventually(lambda: any("loaded" in line["message"] for line in lines_of(replica)), what="a line")
    assert await replica.terminate() == 0
    lines = lines_of(replica)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert any(line["message"].startswith("shutting down") for line in lines)


@pytest.mark.long
async def test_the_id_of_a_write_over_a_gateway_lies_in_etcd_and_comes_back(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--cluster", "east")
    write_config(tmp_path / "gateway.yaml", {"east": [replica.grpc]})
    gateway = FederatedProcess(tmp_path / "gateway.yaml", tmp_path / "gateway.log")
    await gateway.start()
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    try:
        metadata = (("x-request-id", "deploy-42"),)
        async with gateway.stub() as stub, replica.stub() as direct:

            async def created() -> bool:
                request = pb.CreateInstanceRequest(instance=instance("a-1"), request_id="once")
                try:
                    await stub.CreateInstance(request, metadata=metadata)
                except grpc.aio.AioRpcError:  # the store may be slow on a busy machine
                    return False
                return True

            await eventually(created, what="a stored instance")
            record, _ = await store.get(HqKeys(etcd.prefix).spec("a-1"))
            assert record is not None
            assert storage_pb2.SpecRecord.FromString(record.value).call_id == "deploy-42"
            call = direct.UpdateInstance(
                pb.UpdateInstanceRequest(instance=instance("a-1", text="x")), metadata=(("x-request-id", "deploy-43"),)
            )
            await call
            assert dict(await call.trailing_metadata())["x-request-id"] == "deploy-43"
            for stub_of_one in (stub, direct):
                read = stub_of_one.GetInstance(pb.GetInstanceRequest(id="a-1"), metadata=(("x-request-id", "look-44"),))
                await read
                assert dict(await read.trailing_metadata())["x-request-id"] == "look-44"
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stub.GetInstance(pb.GetInstanceRequest(id="nobody"), metadata=metadata)
            assert dict(failed.value.trailing_metadata())["x-request-id"] == "deploy-42"
    finally:
        await store.close()
        await gateway.kill()
