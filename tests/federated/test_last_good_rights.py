"""What a location said to somebody with few rights is not remembered for others."""

from __future__ import annotations

from pathlib import Path

from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import create
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, secure_channel, served
from tests.support.secured_gateway import federated


async def test_an_answer_that_was_narrowed_for_its_caller_is_kept_for_no_other_caller(tmp_path: Path) -> None:
    """Else a reader of one service could make an instance of another one seem missing while its location is away."""
    files = Secured(tmp_path)
    asked = pb.FindInstancesRequest(filter=pb.InstanceFilter(instance_id=["mail-1"]))
    asked.read.allow_last_good = True
    async with (
        served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as one,
        federated(files, one.addresses.grpc_mtls, last_good_bytes=1 << 20) as where,
    ):
        channel = secure_channel(where.grpc, files.authority)
        admin, reader = (Caller(channel, files.issuer.token(name)) for name in ("admin", "web-reader"))
        async with channel:
            await admin.call("CreateInstance", create("mail-1", "mail"))
            assert len((await admin.call("FindInstances", asked)).instances) == 1
            assert not (await reader.call("FindInstances", asked)).instances
            one.server.stop()

            async def is_silent() -> bool:
                found = await admin.call("FindInstances", asked)
                assert [one.meta.id for one in found.instances] == ["mail-1"]
                return bool(found.sources[0].error)

            await eventually(is_silent, what="the location away")
            assert (await reader.refusal("FindInstances", asked))[0] == "UNAVAILABLE"
