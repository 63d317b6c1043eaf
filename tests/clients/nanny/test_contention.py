"""Uploaders against each other, against a scheduler, and with installations away."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from descriptions.description import parse_description
from descriptions.shares import Share
from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from nannyctl.commands.uploader import make_plans
from nannyctl.plans.plan import InstancePlan
from nannyctl.sending.results import Result, UploadOutcome
from nannyctl.sending.uploading import Upload
from tests.clients.nanny.uploads import description, expected, held_by, nanny, start, summary, written
from tests.clients.process import ended
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas

COUNT = 200

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


async def planned(client: Client, whole: dict[str, Any]) -> InstancePlan:
    faults: list[str] = []
    parsed = parse_description(whole, "web.yaml", faults)
    assert not faults
    [plan] = await make_plans(client, [Share(parsed, parsed.placements)], prune=False)
    return plan


async def carried_out(client: Client, plan: InstancePlan) -> list[Result]:
    told: list[Result] = []
    results = await Upload(client, told.append, random.Random(1), parallel=4).run(plan)
    assert sorted(r.id for r in told) == [action.id for action in plan.writes], "every write is told once"
    return results


@asynccontextmanager
async def two_clients(replica: ReplicaProcess) -> AsyncIterator[tuple[Client, Client]]:
    async with Client([replica.grpc]) as first, Client([replica.grpc]) as second:
        yield first, second


@pytest.mark.long
async def test_two_uploads_of_the_same_instances_leave_each_as_one_of_the_two_described_it(
    replica: ReplicaProcess, client: Client
) -> None:
    await carried_out(client, await planned(client, description(COUNT, "v1")))
    for instance in (await held_by(client)).values():
        instance.meta.annotations["theirs"] = instance.meta.id
        await client.update(instance, fields=["meta.annotations"])
    wanted = [description(COUNT, name, drop="others") for name in ("a", "b")]
    async with two_clients(replica) as clients:
        plans = [await planned(one, whole) for one, whole in zip(clients, wanted, strict=True)]
        both = await asyncio.gather(*(carried_out(one, plan) for one, plan in zip(clients, plans, strict=True)))
    assert {r.outcome for results in both for r in results} <= {
        UploadOutcome.UPDATED,
        UploadOutcome.UNCHANGED,
        UploadOutcome.CONFLICT,
    }
    winners = set()
    for number, (name, instance) in enumerate(sorted((await held_by(client)).items())):
        found = summary(instance)
        assert found in (expected(number, "a"), expected(number, "b"))
        assert instance.meta.annotations["theirs"] == name
        winners |= set(found["revisions"])
    assert winners <= {"a", "b"}


@pytest.mark.long
async def test_two_uploaders_that_add_revisions_lose_neither(replica: ReplicaProcess, client: Client) -> None:
    await carried_out(client, await planned(client, description(COUNT, "v1")))
    async with two_clients(replica) as clients:
        plans = [await planned(one, description(COUNT, name)) for one, name in zip(clients, "ab", strict=True)]
        both = await asyncio.gather(*(carried_out(one, plan) for one, plan in zip(clients, plans, strict=True)))
    assert {r.outcome for results in both for r in results} == {UploadOutcome.UPDATED}
    for number, (_, instance) in enumerate(sorted((await held_by(client)).items())):
        found = summary(instance)
        last_a, last_b = expected(number, "v1", "b", "a"), expected(number, "v1", "a", "b")
        assert found in (last_a, last_b), "mixed"


@pytest.mark.long
async def test_two_uploaders_that_create_the_same_instances_keep_each_others_revisions(
    replica: ReplicaProcess, client: Client
) -> None:
    async with two_clients(replica) as clients:
        plans = [await planned(one, description(COUNT, name)) for one, name in zip(clients, "ab", strict=True)]
        both = await asyncio.gather(*(carried_out(one, plan) for one, plan in zip(clients, plans, strict=True)))
    outcomes = [{r.id: r.outcome for r in results} for results in both]
    for number, (one, instance) in enumerate(sorted((await held_by(client)).items())):
        assert {outcomes[0][one], outcomes[1][one]} == {UploadOutcome.CREATED, UploadOutcome.UPDATED}
        assert summary(instance) in (expected(number, "a", "b"), expected(number, "b", "a"))


@pytest.mark.long
async def test_two_upload_processes_at_once_both_end_and_no_instance_is_a_mixture(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    files = [written(tmp_path, f"{name}.yaml", description(COUNT, name, drop="others")) for name in "ab"]
    uploads = [await start("upload", "-f", file, server=replica.grpc) for file in files]
    for done in [await ended(upload) for upload in uploads]:
        assert done.code in (0, 4), done.err
    for number, (_, instance) in enumerate(sorted((await held_by(client)).items())):
        assert summary(instance) in (expected(number, "a"), expected(number, "b"))
    assert (await nanny("upload", "-f", files[0], server=replica.grpc)).code == 0
    assert (await nanny("plan", "--exit-code", "-f", files[0], server=replica.grpc)).code == 0


@pytest.mark.long
async def test_what_a_scheduler_writes_meanwhile_is_not_lost(replica: ReplicaProcess, client: Client) -> None:
    unplaced = [{"id": f"web-{n:04}"} for n in range(COUNT)]
    whole: dict[str, Any] = {"service": "web", "instances": unplaced, "revisions": [{"id": "v1"}], "ready": "v1"}
    await carried_out(client, await planned(client, whole))
    plan = await planned(client, {**whole, "revisions": [{"id": "v2"}], "ready": "v2"})

    async def schedule(number: int) -> None:
        instance = model.Instance()
        instance.meta.id, instance.spec.node_name = f"web-{number:04}", f"node-{number}"
        instance.spec.allocation.port.add(name="http", number=80)
        await client.update(instance, fields=["spec.allocation", "spec.node_name"])

    uploading = asyncio.ensure_future(carried_out(client, plan))
    await asyncio.gather(*(schedule(n) for n in range(COUNT)))
    results = await uploading
    assert {result.outcome for result in results} == {UploadOutcome.UPDATED}
    for number, (_, instance) in enumerate(sorted((await held_by(client)).items())):
        assert (instance.spec.node_name, instance.spec.allocation.port[0].number) == (f"node-{number}", 80)
        assert [revision.id for revision in instance.spec.revision] == ["v1", "v2"]


@contextmanager
def refusing() -> Iterator[str]:
    """An address where nobody listens, kept from others."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.long
async def test_an_installation_that_is_away_does_not_stop_the_others(
    etcd: SharedEtcd, replicas: Replicas, tmp_path: Path
) -> None:
    sas = await replicas.start([etcd.endpoint], f"{etcd.prefix}sas/")
    man = await replicas.start([etcd.endpoint], f"{etcd.prefix}man/")
    whole = description(6, "v1")
    for number, instance in enumerate(whole["instances"]):
        instance["installation"] = ("sas", "man", "vla")[number % 3]
    with refusing() as nobody:
        installations = {"sas": [sas.grpc], "man": [man.grpc], "vla": [nobody]}
        file = written(tmp_path, "web.yaml", {**whole, "installations": installations})
        done = await nanny("upload", "-f", file, "-o", "json", "--timeout", "4")
        assert done.code == 9, done.err
        told = {one["name"]: one for one in json.loads(done.out)["installations"]}
        counts = {name: one["counts"] for name, one in told.items()}
        assert counts == {"sas": {"created": 2}, "man": {"created": 2}, "vla": {}}
        assert told["vla"]["error"].startswith(f"no server responds ({nobody})")
        some = await nanny("plan", "-f", file, "--timeout", "4")
        assert some.code == 9
        assert f"nanny: vla: no server responds ({nobody})" in some.err
        assert "sas: " in some.out
        assert "man: " in some.out
        away = await nanny("upload", "-f", file, "--only", "vla", "--timeout", "4")
        assert away.code == 5
        spared = await nanny("upload", "-f", file, "--only", "sas", "--only", "man")
        assert (spared.code, spared.out.splitlines()[-2:]) == (0, ["sas: 2 unchanged", "man: 2 unchanged"])
    async with Client([sas.grpc]) as client:
        assert set(await held_by(client)) == {"web-0000", "web-0003"}


@pytest.mark.long
async def test_a_faulty_description_sends_nothing(replica: ReplicaProcess, client: Client, tmp_path: Path) -> None:
    good = written(tmp_path, "a.yaml", description(2, "v1"))
    bad = written(tmp_path, "b.yaml", {"service": "mail", "instances": [{"id": "not an id"}]})
    done = await nanny("upload", "-f", good, "-f", bad, server=replica.grpc)
    assert done.code == 1
    assert f"nanny: {bad}: instances[0].id: 'not an id' is malformed" in done.err
    assert await held_by(client) == {}
