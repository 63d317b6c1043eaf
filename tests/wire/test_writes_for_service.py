"""Writes that name their service, over the wire and through a gateway, change no instance of another service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import create, instance, revision
from tests.support.secured import Caller, Secured, secure_channel, served
from tests.support.secured_gateway import federated

GET = pb.GetInstanceRequest(id="mail-1")


def writes_of_mail_1(service: str) -> dict[str, Message]:
    """By call."""
    update = pb.UpdateInstanceRequest(instance=instance("mail-1", "web", revisions=()), service_id=service)
    return {
        "UpdateInstance": update,
        "PutRevision": pb.PutRevisionRequest(instance_id="mail-1", revision=revision("r2"), service_id=service),
        "DeleteRevision": pb.DeleteRevisionRequest(instance_id="mail-1", revision_id="r1", service_id=service),
        "DeleteInstance": pb.DeleteInstanceRequest(id="mail-1", service_id=service),
    }


@pytest.fixture(params=["replica", "gateway"])
async def channel(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Secured, grpc.aio.Channel]]:
    """To a replica with mail-1, or to a gateway over it."""
    files = Secured(tmp_path)
    async with AsyncExitStack() as stack:
        security = files.security(**files.with_certificates())
        one = await stack.enter_async_context(served(security, grpc_mtls="127.0.0.1:0"))
        address = one.addresses.grpc
        if request.param == "gateway":
            address = (await stack.enter_async_context(federated(files, one.addresses.grpc_mtls))).grpc
        made = await stack.enter_async_context(secure_channel(address, files.authority))
        direct = await stack.enter_async_context(secure_channel(one.addresses.grpc, files.authority))
        await Caller(direct, files.issuer.token("admin")).call("CreateInstance", create("mail-1", "mail"))
        yield files, made


async def test_even_an_admins_write_for_a_service_changes_no_other_services_instance(
    channel: tuple[Secured, grpc.aio.Channel],
) -> None:
    files, made = channel
    admin = Caller(made, files.issuer.token("admin"))
    before = (await admin.call("GetInstance", GET)).instance
    for name, request in writes_of_mail_1("web").items():
        code, words = await admin.refusal(name, request)
        assert (name, code) == (name, "FAILED_PRECONDITION")
        assert "belongs to another service, not web" in words
    batch = pb.ApplyInstancesRequest(instance=[instance("mail-1", "web"), instance("web-1", "web")], service_id="web")
    batch.instance[0].meta.cluster = batch.instance[1].meta.cluster = "test"
    other, own = (await admin.call("ApplyInstances", batch)).result
    assert (other.error.reason, own.outcome) == ("WRONG_SERVICE", pb.APPLY_OUTCOME_CREATED)
    assert (await admin.call("GetInstance", GET)).instance == before


async def test_an_instance_out_of_reach_is_not_found_whatever_service_is_named(
    channel: tuple[Secured, grpc.aio.Channel],
) -> None:
    files, made = channel
    uploader = Caller(made, files.issuer.token("web-uploader"))
    for name, request in writes_of_mail_1("web").items():
        assert (name, (await uploader.refusal(name, request))[0]) == (name, "NOT_FOUND")


async def test_an_invalid_service_is_refused_by_the_name_of_its_field(
    channel: tuple[Secured, grpc.aio.Channel],
) -> None:
    files, made = channel
    admin = Caller(made, files.issuer.token("admin"))
    for name, request in writes_of_mail_1("no service").items():
        code, words = await admin.refusal(name, request)
        assert (name, code) == (name, "INVALID_ARGUMENT")
        assert "service_id" in words
