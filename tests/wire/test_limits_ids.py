"""Tricks with ids and paths reach no neighbour, over both transports."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import instance, revision
from tests.support.secured import Caller, Served, served
from tests.wire.raw_http import RawHttp, post

NEIGHBOURS = ["web-1", "web-10", "web-1.a", "web-1@x", "web", "WEB-1"]
TRICKS = {
    "a slash": "web-1/r1",
    "a slash at the end": "web-1/",
    "an encoded slash": "web-1%2Fr1",
    "up": "../web-1",
    "dots": "..",
    "NUL": "web-1\x00",
    "NUL in the middle": "web-1\x000",
    "a line feed": "web-1\n",
    "a space": "web-1 ",
    "full width": "\uff57eb-1",
    "a combining accent": "web-1\u0301",
    "a hyphen that is none": "web\u20101",
    "right to left": "\u202eweb-1",
    "zero width": "web-1\u200b",
    "nothing": "",
    "too long": "w" * 254,
    "a star": "web-*",
}


@pytest.fixture
async def replica() -> AsyncIterator[Served]:
    async with served(None) as one, grpc.aio.insecure_channel(one.addresses.grpc) as channel:
        for name in NEIGHBOURS:
            await Caller(channel).call("CreateInstance", pb.CreateInstanceRequest(instance=instance(name)))
        yield one


@pytest.fixture
async def caller(replica: Served) -> AsyncIterator[Caller]:
    async with grpc.aio.insecure_channel(replica.addresses.grpc) as channel:
        yield Caller(channel)


async def names(caller: Caller) -> list[str]:
    found = await caller.call("FindInstances", pb.FindInstancesRequest())
    return sorted(i.meta.id for i in found.instances)


@pytest.mark.parametrize("trick", TRICKS)
async def test_an_id_in_disguise_is_refused_and_reaches_nobody(replica: Served, caller: Caller, trick: str) -> None:
    name = TRICKS[trick]
    requests = {
        "GetInstance": pb.GetInstanceRequest(id=name),
        "DeleteInstance": pb.DeleteInstanceRequest(id=name),
        "GetRevision": pb.GetRevisionRequest(instance_id=name),
        "PutRevision": pb.PutRevisionRequest(instance_id=name, revision=revision("r2")),
        "CreateInstance": pb.CreateInstanceRequest(instance=instance(name)),
    }
    for call, request in requests.items():
        assert (await caller.refusal(call, request))[0] == "INVALID_ARGUMENT", call
    answer = await RawHttp(int(replica.addresses.http.rpartition(":")[2])).post(
        json.dumps({"id": name}).encode(), "/hq.v1.InstanceService/DeleteInstance"
    )
    assert answer.status == 400
    assert await names(caller) == sorted(NEIGHBOURS)


async def test_deleting_an_instance_leaves_those_whose_names_begin_with_its_own_with_their_secrets(
    caller: Caller,
) -> None:
    await caller.call("DeleteInstance", pb.DeleteInstanceRequest(id="web-1"))
    left = [name for name in NEIGHBOURS if name != "web-1"]
    assert await names(caller) == sorted(left)
    for name in left:
        fetched = await caller.call("GetRevision", pb.GetRevisionRequest(instance_id=name, revision_id="r1"))
        assert len(fetched.revision[0].secret) == 1, name


@pytest.mark.parametrize(
    "path",
    [
        "//hq.v1.InstanceService/GetInstance",
        "/hq.v1.InstanceService/GetInstance/",
        "/hq.v1.InstanceService//GetInstance",
        "/hq.v1.InstanceService/./GetInstance",
        "/x/../hq.v1.InstanceService/GetInstance",
        "/hq.v1.InstanceService/GetInstance%00",
        "/hq.v1.InstanceService%2FGetInstance/..",
        "/hq.v1.InstanceService%2FGetInstance",
        "/hq.v1.InstanceService/%47etInstance",
        "/hq.v1.InstanceService/getinstance",
        "/hq.v1.InstanceService/GetInstance;x=y",
    ],
)
async def test_a_path_in_disguise_is_no_call(replica: Served, path: str) -> None:
    http = RawHttp(int(replica.addresses.http.rpartition(":")[2]))
    async with http.connect() as connection:
        await connection.send(post(b'{"id":"web-1"}', path))
        answer = await connection.answer()
    assert answer.status in {400, 404}
    assert b"web-1" not in answer.body
