"""nanny against a real replica over a real etcd: uploads that are broken off, repeated and rolled back."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.nanny.uploads import (
    count,
    description,
    expected,
    held_by,
    nanny,
    start,
    summary,
    written,
)
from tests.clients.process import ended
from tests.support.etcd import SharedEtcd
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


@pytest.fixture
async def held_back(replica: ReplicaProcess) -> AsyncIterator[Proxy]:
    """A way to the replica through this process: while the test does not look, nothing passes."""
    async with Proxy(replica.grpc) as proxy:
        yield proxy


@pytest.mark.long
async def test_an_upload_of_a_thousand_instances_killed_in_the_middle_is_completed_by_the_next(
    replica: ReplicaProcess, held_back: Proxy, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(1000, "v1", secrets=True))

    async def some_are_there() -> bool:
        return await count(client) >= 200

    upload = await start("upload", "-f", file, "--parallel", "1", server=held_back.endpoint)
    await eventually(some_are_there)
    upload.kill()
    await ended(upload)
    before = await held_by(client)
    assert 200 <= len(before) < 1000

    again = await nanny("upload", "-f", file, "-o", "json", server=replica.grpc)
    assert again.code == 0, again.err
    [told] = json.loads(again.out)["installations"]
    outcomes = {result["instance"]: result["outcome"] for result in told["results"]}
    # What the killed one had sent may have been stored after we looked.
    assert set(outcomes.values()) == {"created", "unchanged"}
    assert {outcomes[one] for one in before} == {"unchanged"}
    assert len(outcomes) == 1000
    after = await held_by(client)
    assert {one: summary(instance) for one, instance in after.items()} == {
        f"web-{n:04}": expected(n, "v1", secrets=1) for n in range(1000)
    }
    assert all(after[one] == instance for one, instance in before.items()), "what was there was written again"
    assert (await nanny("plan", "--exit-code", "-f", file, server=replica.grpc)).code == 0


@pytest.mark.long
async def test_a_replacement_killed_in_the_middle_is_completed_by_the_next_upload(
    replica: ReplicaProcess, held_back: Proxy, client: Client, tmp_path: Path
) -> None:
    first = written(tmp_path, "v1.yaml", description(500, "v1"))
    second = written(tmp_path, "v2.yaml", description(500, "v2", installed=["v1"]))
    assert (await nanny("upload", "-f", first, server=replica.grpc)).code == 0
    before = await held_by(client)

    async def written_again() -> set[str]:
        now = await held_by(client)
        return {one for one, instance in now.items() if instance != before[one]}

    upload = await start("upload", "-f", second, "--parallel", "1", server=held_back.endpoint)
    await eventually(written_again)
    upload.kill()
    await ended(upload)
    assert len(await written_again()) < 500
    again = await nanny("upload", "-f", second, server=replica.grpc)
    assert again.code == 0, again.err
    after = await held_by(client)
    assert {one: summary(instance) for one, instance in after.items()} == {
        f"web-{n:04}": expected(n, "v1", "v2") for n in range(500)
    }


@pytest.mark.long
async def test_ctrl_c_says_how_to_go_on(
    replica: ReplicaProcess, held_back: Proxy, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(500, "v1"))

    async def some_are_there() -> bool:
        return await count(client) >= 100

    upload = await start("upload", "-f", file, "--parallel", "1", server=held_back.endpoint)
    await eventually(some_are_there)
    upload.send_signal(signal.SIGINT)
    stopped = await ended(upload)
    assert stopped.code == 130
    assert stopped.err.splitlines()[-1] == "nanny: interrupted; what was sent is kept: run it again to continue."
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    assert await count(client) == 500


@pytest.mark.long
async def test_an_installation_lost_in_the_middle_is_told_and_finished_later(
    etcd: SharedEtcd, replicas: Replicas, replica: ReplicaProcess, held_back: Proxy, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(1000, "v1"))

    async def some_are_there() -> bool:
        return await count(client) >= 100

    upload = await start("upload", "-f", file, "--timeout", "4", "-o", "json", server=held_back.endpoint)
    await eventually(some_are_there)
    await replica.kill()
    lost = await ended(upload)
    assert lost.code in (5, 6), lost.err
    [told] = json.loads(lost.out)["installations"]
    assert len(told["results"]) == 1000
    assert told["counts"]["away"] > 0
    other = await replicas.start([etcd.endpoint], etcd.prefix)
    again = await nanny("upload", "-f", file, server=other.grpc)
    assert again.code == 0, again.err
    async with Client([other.grpc]) as after:
        held = await held_by(after)
        done = {r["instance"] for r in told["results"] if r["outcome"] == "created"}
        assert {one: summary(instance) for one, instance in held.items()} == {
            f"web-{n:04}": expected(n, "v1") for n in range(1000)
        }
        assert done <= set(held)


@pytest.mark.long
async def test_a_plan_is_empty_after_an_upload_and_the_second_upload_writes_nothing(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(20, "v1", "v2", secrets=True))
    assert (await nanny("plan", "--exit-code", "-f", file, server=replica.grpc)).code == 10
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    before = await held_by(client)
    shown = await nanny("plan", "--exit-code", "-f", file, "-o", "json", server=replica.grpc)
    assert shown.code == 0, shown.out
    [told] = json.loads(shown.out)["installations"][0]["services"]
    assert (told["empty"], told["actions"]) == (True, [])
    again = await nanny("upload", "-f", file, server=replica.grpc)
    assert again.out.splitlines()[-1] == "default: 20 unchanged"
    assert await held_by(client) == before


@pytest.mark.long
@pytest.mark.parametrize("placed", [True, False], ids=["on nodes", "without nodes"])
async def test_descriptors_of_secrets_are_changed_kept_and_cleared(
    replica: ReplicaProcess, client: Client, tmp_path: Path, placed: bool
) -> None:
    whole = description(2, "v1", "v2", secrets=True)
    if not placed:
        whole["instances"] = [{"id": one["id"]} for one in whole["instances"]]

    async def upload() -> list[list[str]]:
        done = await nanny("upload", "-f", written(tmp_path, "web.yaml", whole), server=replica.grpc)
        assert done.code == 0, done.err
        fetched = await client.get_revision("web-0000")
        return [[secret.id for secret in revision.secret] for revision in fetched.revision]

    assert await upload() == [["web/key"], ["web/key"]]
    whole["revisions"][0]["secret"] = [{**whole["revisions"][0]["secret"][0], "id": "web/new"}]
    assert await upload() == [["web/new"], ["web/key"]]
    del whole["revisions"][0]["secret"]
    assert await upload() == [["web/new"], ["web/key"]]
    whole["revisions"][1]["secret"] = []
    whole["weight"] = 10  # what changes with them arrives, too
    assert await upload() == [["web/new"], []]
    file = written(tmp_path, "web.yaml", whole)
    assert (await nanny("plan", "--exit-code", "-f", file, server=replica.grpc)).code == 0


@pytest.mark.long
async def test_what_hq_refuses_is_told_per_instance_and_the_others_are_done(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    whole = description(3, "v1")
    whole["instances"][1]["allocation"]["memoryBytes"] = 1 << 60
    file = written(tmp_path, "web.yaml", whole)
    shown = await nanny("plan", "-f", file, server=replica.grpc)
    assert shown.code == 1
    assert "HQ would refuse it: spec.allocation.memory_bytes" in shown.out
    assert await held_by(client) == {}
    done = await nanny("upload", "-f", file, server=replica.grpc)
    assert done.code == 1
    assert "web-0001: refused: spec.allocation.memory_bytes" in done.err
    assert set(await held_by(client)) == {"web-0000", "web-0002"}


@pytest.mark.long
async def test_instances_that_are_not_described_are_deleted_only_with_prune(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    assert (await nanny("upload", "-f", written(tmp_path, "a", description(3, "v1")), server=replica.grpc)).code == 0
    file = written(tmp_path, "web.yaml", description(2, "v1"))
    shown = await nanny("plan", "-f", file, server=replica.grpc)
    assert "is not described: left unchanged" in shown.out
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    assert len(await held_by(client)) == 3
    assert (await nanny("upload", "-f", file, "--prune", server=replica.grpc)).code == 0
    assert set(await held_by(client)) == {"web-0000", "web-0001"}


@pytest.mark.long
async def test_times_of_a_service_reach_its_instances_and_hq_names_those_that_it_refuses(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    times = {"reportInterval": "20s", "timeout": "60s"}
    good = written(tmp_path, "good.yaml", description(1, "v1", liveness=times))
    bad = written(tmp_path, "bad.yaml", description(1, "v1", liveness={**times, "timeout": "30s"}))
    assert (await nanny("upload", "-f", good, server=replica.grpc)).code == 0
    [held] = (await held_by(client)).values()
    assert (held.spec.liveness.report_interval.seconds, held.spec.liveness.timeout.seconds) == (20, 60)
    refused = await nanny("upload", "-f", bad, server=replica.grpc)
    assert (refused.code, "spec.liveness.timeout" in refused.out + refused.err) == (1, True), refused
