"""The commands of `nanny` over a real Nanny and a real HQ: what they print, as tables and as JSON, and how they end."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hqclient import Client
from hqpb.v1 import instance_pb2
from nanny.snapshots.wanted import READY, target_of
from nannyctl.main import cli
from tests.support.following_agents import following_agents
from tests.support.gateway_process import Program, Registry
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
NAMES = ("web-0", "web-1", "web-2")


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Scene:
    """Nanny, its HQ with three instances of `web` that run r1, and a directory."""

    nanny: str
    hq: Client
    directory: Path

    async def run(self, *words: str, code: int = 0) -> Ended:
        """A command; it must end with this code."""
        environment = {"NANNY_SERVER": self.nanny, "NANNY_USER": "ann"}
        found = await asyncio.to_thread(CliRunner().invoke, cli, words, env=environment)
        ended = Ended(found.exit_code, found.stdout, found.stderr)
        assert ended.code == code, (words, ended)
        return ended

    async def versions(self) -> list[int]:
        return [(await self.hq.get(name)).instance.meta.version for name in NAMES]

    def description(self, title: str, **more: Any) -> str:
        """A file."""
        path = self.directory / f"{title}.yaml"
        instances = [{"id": name, "node": f"node-{name}"} for name in NAMES]
        revision = {"id": title, "container": [{"name": "main", "command": ["run", title]}]}
        path.write_text(json.dumps({"service": "web", "instances": instances, "revisions": [revision], **more}))
        return str(path)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    registry = Registry(tmp_path)
    await registry.start()
    words = ("dev", "--store", "memory", "--term", "2s", "--drift-every", "1s", "--location", f"ams={registry.grpc}")
    nanny = Program("nanny.main", (*words, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"), tmp_path / "nanny.log")
    try:
        await nanny.start()
        async with following_agents(registry.client, ["web"], random.Random(1)):
            for name in NAMES:
                await registry.client.create(_instance(name))
            await eventually(lambda: _all_ready(registry.client), 20.0, "all are ready")
            yield Scene(nanny.grpc, registry.client, tmp_path)
    finally:
        await nanny.kill()
        await registry.kill()


def _instance(name: str) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.labels["zone"] = name, "web", name[-1]
    made.spec.node_name, made.spec.allocation.host = f"node-{name}", "127.0.0.1"
    made.spec.allocation.port.add(name="http", number=8080)
    made.spec.revision.add(id="r1", target=READY).container.add(name="main", command=["true"])
    return made


async def _all_ready(client: Client) -> bool:
    ready = [(await client.get(name)).instance.status.ready.status for name in NAMES]
    return set(ready) == {instance_pb2.CONDITION_STATUS_TRUE}


async def test_a_service_is_adopted_as_it_runs_rolled_out_and_back_and_stopped(scene: Scene) -> None:
    before = await scene.versions()
    adopted = await scene.run(
        "service", "create", "web", "--adopt", "--max-unavailable", "1", "--min-ready-time", "0", "--soak", "0"
    )
    assert "Online" in adopted.out
    shown = (await scene.run("service", "show", "web", "-o", "json")).json["service"]
    assert [(one["snapshotId"], one["current"], one["target"]) for one in shown["snapshot"]] == [
        ("r1", "CURRENT_STATE_ACTIVE", "TARGET_ACTIVE")
    ]
    assert "127.0.0.1" in (await scene.run("snapshot", "show", "web", "r1")).out
    added = await scene.run("snapshot", "add", "web", "-f", scene.description("v2"), "-m", "bigger", "-o", "json")
    v2 = added.json["snapshot"]["id"]
    assert [row.split()[0] for row in (await scene.run("snapshot", "list", "web")).out.splitlines()[1:]] == [
        v2[:8],
        "r1",
    ]
    assert await scene.versions() == before  # nothing was touched until now

    rolled = await scene.run("target", "web", "ACTIVE", "--wait", "60s", "-m", "let us see", "--ticket", "OPS-1")
    assert "ACTIVATING" in rolled.err
    rows = (await scene.run("instances", "web", "-o", "json")).json["instance"]
    assert [(row["id"], row["stateName"], row["serving"]) for row in rows] == [(n, "Active", True) for n in NAMES]
    assert "let us see; OPS-1" in (await scene.run("history", "web")).out
    shown = (await scene.run("rollout", "show", "web", "-o", "json")).json["rollout"]
    assert (shown["snapshotId"], len(shown["batch"]), shown["order"]["outcome"]) == (v2, 3, "ORDER_OUTCOME_REACHED")
    text = (await scene.run("rollout", "show", "web", v2[:6])).out
    assert "ordered by ann: let us see; OPS-1" in text
    assert "batch 3 begins: web-2 (" in text

    late = await scene.run("target", "web", "ACTIVE", "r1", "--wait", "0.2s", code=8)
    assert "it goes on" in late.err
    assert (await scene.run("status", "web", code=8)).err == ""  # under way
    await scene.run("activate", "web", "r1", "--wait", "60s")
    assert target_of((await scene.hq.get("web-0")).instance, "r1") == READY
    await scene.run("watch", "web", "--wait", "60s")  # what is being switched off is no way back yet
    assert "it goes on" in (await scene.run("rollback", "web", "--wait", "0.2s", "-m", "forward again", code=8)).err
    await scene.run("rollback", "web", "--wait", "60s", "-m", "said by somebody else")  # the same one
    await scene.run("watch", "web", "--wait", "60s")  # r1 is switched off after the order is reached
    assert "Online 3/3" in (await scene.run("status", "web")).out
    assert [row["serving"] for row in (await scene.run("instances", "web", v2, "-o", "json")).json["instance"]]
    assert target_of((await scene.hq.get("web-0")).instance, "r1") != READY

    await scene.run("stop", "web", "--wait", "60s")
    assert "Offline" in (await scene.run("service", "list")).out


async def test_drift_is_shown_while_nothing_may_be_done_and_gone_once_it_is_mended(scene: Scene) -> None:
    await scene.run("service", "create", "web", "--adopt", "--min-ready-time", "0", "--soak", "0")
    frozen = await scene.run("control", "freeze", "-m", "to look at it")
    assert "to look at it" in frozen.out
    moved = (await scene.hq.get("web-1")).instance
    moved.spec.revision[0].target = instance_pb2.REVISION_TARGET_INSTALLED
    await scene.hq.apply([moved])

    async def drift() -> list[str]:
        found = (await scene.run("service", "show", "web", "-o", "json")).json["service"].get("drift", [])
        return list(found)

    assert "web-1" in (await eventually(drift, 90.0, "the drift"))[0]
    assert "drift: web-1 (ams) wants nothing READY, not r1" in (await scene.run("service", "show", "web")).out
    await scene.run("control", "unfreeze")

    async def is_mended() -> bool:
        return not await drift()

    await eventually(is_mended, 60.0, "no drift")
    assert target_of((await scene.hq.get("web-1")).instance, "r1") == READY


async def test_while_frozen_no_batch_begins_and_the_roll_out_goes_on_after(scene: Scene) -> None:
    await scene.run("service", "create", "web", "--adopt", "--min-ready-time", "0", "--soak", "0")
    added = await scene.run("snapshot", "add", "web", "-f", scene.description("v2"), "-o", "json")
    v2 = added.json["snapshot"]["id"]
    await scene.run("target", "web", "PREPARED", v2, "--wait", "30s")
    await scene.run("control", "freeze", "-m", "to look at it")
    await scene.run("activate", "web", v2, "--wait", "3s", code=8)
    running = [target_of((await scene.hq.get(name)).instance, "r1") for name in NAMES]
    assert running == [READY] * 3
    await scene.run("control", "unfreeze")
    await scene.run("activate", "web", v2, "--wait", "60s")
    await scene.run("watch", "web", "--wait", "60s")  # r1 is switched off after the order is reached
    assert "Online 3/3" in (await scene.run("status", "web")).out


async def test_while_a_service_is_paused_an_instance_keeps_its_target_and_changes_after_resume(scene: Scene) -> None:
    await scene.run("service", "create", "web", "--adopt", "--min-ready-time", "0", "--soak", "0")
    paused = await scene.run("pause", "web", "-m", "looking")
    assert "paused by ann: looking" in paused.out
    await scene.run("instances", "web", "--set", "web-0", "--target", "PREPARED")
    assert target_of((await scene.hq.get("web-0")).instance, "r1") == READY
    await scene.run("resume", "web", "--wait", "30s")

    async def is_off() -> bool:
        return target_of((await scene.hq.get("web-0")).instance, "r1") != READY

    await eventually(is_off, 30.0, "it is switched off")
    [row] = [one for one in (await scene.run("instances", "web")).out.splitlines() if one.startswith("web-0")]
    assert "(own)" in row


async def test_a_location_is_left_out_and_taken_back_in(scene: Scene) -> None:
    await scene.run(
        "service", "create", "web", "--adopt", "--min-ready-time", "0", "--soak", "0", "--max-unavailable", "2"
    )
    added = await scene.run("snapshot", "add", "web", "-f", scene.description("v2"), "-o", "json")
    assert "leaves out ams" in (await scene.run("service", "leave-out", "web", "ams", "-m", "no power")).out
    before = await scene.versions()
    table = (await scene.run("target", "web", "ACTIVE", "--wait", "60s")).out
    assert "leaves out ams" in table
    assert await scene.versions() == before
    assert "leaves out" not in (await scene.run("service", "leave-out", "web")).out
    revision = added.json["snapshot"]["revisionId"]

    async def is_brought() -> bool:
        found = [(await scene.hq.get(name)).instance for name in NAMES]
        return all(target_of(one, revision) == READY for one in found)

    await eventually(is_brought, 60.0, "what it lacked is brought")
    kept = (await scene.run("service", "show", "web", "-o", "json")).json["service"]["info"]["rollout"]
    assert kept["maxUnavailable"] == "2"
    assert "no power" in (await scene.run("history", "web")).out
    assert (await scene.run("service", "leave-out", "web", "mars", code=1)).err


async def test_a_refused_command_ends_with_a_code_and_a_reason(scene: Scene) -> None:
    bad = scene.directory / "bad.yaml"
    bad.write_text("{service: web, ready: v1, frob: 1, instances: [{id: a b}], revisions: [{id: v1}]}")
    await scene.run("service", "create", "web", "--adopt")
    faults = (await scene.run("snapshot", "add", "web", "-f", str(bad), code=1)).err
    assert all(name in faults for name in ("frob", "ready", "instances[0].id"))
    checked = await scene.run("snapshot", "add", "web", "--check", "-f", scene.description("v2"))
    assert "would be stored" in checked.out
    for words, code, told in (
        (("service", "create", "web"), 4, "already exists"),
        (("service", "create", "none", "--adopt"), 1, "holds no instance"),
        (("service", "create", "web2", "--adopt", "--replace"), 2, "for a new service"),
        (("service", "show", "none"), 3, "there is no service none"),
        (("target", "web", "ACTIVE", "0123456789"), 3, "no such snapshot"),
        (("target", "web", "PREPARED"), 1, "stop"),
        (("instances", "web", "--set", "web-9", "--target", "ACTIVE"), 3, "web-9"),
        (("rollback", "web"), 1, "no snapshot was ACTIVE before"),
        (("activate", "v2", "--service", "web"), 2, "--service"),
        (("service", "delete", "web"), 1, "still has snapshots with a state"),
        (
            ("service", "list", "--nanny", "127.0.0.1:1"),
            5,
            "Nanny at 127.0.0.1:1 cannot be reached",
        ),
    ):
        assert told in (await scene.run(*words, code=code)).err, words
