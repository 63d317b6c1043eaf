"""A wall clock that jumps on a node: nothing restarts, nothing ends early or late, and reports go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import NewNode, StartHq
from tests.clients.instancectl.hearsay import TRUE, told, until_not_ready, until_ready
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import INSTALLED, eventually

FAKETIME = next(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"), None)
HOUR_S, DAY_S = 3600, 86400
LONG_MS, SHORT_MS = 1_800_000, 4_000

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(FAKETIME is None, reason="install libfaketime: it moves the clock of one process"),
]


class WallClock:
    """The wall clock of processes with these variables; their monotonic clocks are the machine's."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump(0)
        self.environment = {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def jump(self, seconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self._file)


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """One that does not take a busy machine for silence."""
    return await start_hq("--liveness-timeout", "120s")


def of_its_own(name: str, script: str, drain_ms: int = 0) -> model.Instance:
    made = revision(script=script)
    container = made.container[0]
    container.drain_period.FromMilliseconds(drain_ms)
    container.readiness_check.exec.command[:] = ["sh", "-c", "echo >> checks"]
    container.readiness_check.period.FromMilliseconds(300)
    container.readiness_check.timeout.FromSeconds(30)
    return instance(made, instance_id=name)


async def until_more(count: Callable[[], int], what: str) -> None:
    before = count()
    await eventually(lambda: count() > before + 1, 60.0, what)


async def until_reported_again(client: Client, name: str) -> None:
    async def heard_ns() -> int:
        return (await client.get(name)).instance.status.last_heartbeat_time.ToNanoseconds()

    before = await heard_ns()

    async def is_newer() -> bool:
        return await heard_ns() > before

    for _ in range(2):  # the first may have been on its way
        await eventually(is_newer, 60.0, f"reports of {name} to go on")
        before = await heard_ns()


def checks(node: NodeProcess, name: str) -> int:
    return sum(len(path.read_text()) for path in node.directory.glob(f"{name}/revisions/*/checks"))


def starts(node: NodeProcess) -> int:
    return node.container_log("loops").count("begins")


@pytest.mark.parametrize("jump_s", [HOUR_S, DAY_S, -HOUR_S, -DAY_S])
async def test_a_jump_of_the_clock_ends_nothing_early_and_holds_nothing_up(
    new_node: NewNode, client: Client, tmp_path: Path, jump_s: int
) -> None:
    """After a jump forwards a long drain and back-off go on, after one backwards short ones end in time."""
    forwards = jump_s > 0
    wait_ms = LONG_MS if forwards else SHORT_MS
    clock = WallClock(tmp_path / "clock")
    tmp_path.chmod(0o755)
    back_off_s = str(2 * wait_ms / 1000)
    node = new_node("--restart-first", back_off_s, "--restart-max", back_off_s)
    node.environment = clock.environment
    await node.start()
    names = ("early", "i-1")
    await client.create(of_its_own("early", "exec sleep 6000"))
    await client.create(of_its_own("i-1", "exec sleep 6000", wait_ms))
    await client.create(of_its_own("loops", "echo begins; exit 1"))
    for name in names:
        await until_ready(client, instance_id=name)
    pids = [await node.container_pid(name) for name in names]
    before = (await told(client, instance_id="early")).ready
    await eventually(lambda: starts(node) > 0)
    stopping = of_its_own("i-1", "exec sleep 6000", wait_ms).spec.revision[0]
    stopping.target = INSTALLED
    await client.put_revision("i-1", stopping)
    await until_not_ready(client, "Stopping")

    clock.jump(jump_s)
    await until_reported_again(client, "early")
    await until_more(lambda: checks(node, "early"), "checks to go on")
    if forwards:
        assert is_alive(pids[1])
        assert starts(node) == 1
    else:
        await eventually(lambda: not is_alive(pids[1]), 60.0, "the drain to end")
        await until_more(lambda: starts(node), "restarts to go on")
    await client.create(of_its_own("late", "exec sleep 6000"))
    await until_ready(client, instance_id="late")
    began = (await node.instance("late"))["revisions"][0]["status"]["container"][0]["state"]["running"]["startTime"]
    begun_at = model.ContainerStatus().state.running.start_time
    begun_at.FromJsonString(began)
    assert abs(begun_at.ToSeconds() - before.last_transition_time.ToSeconds() - jump_s) < 600, "the clock did jump"

    found = await told(client, instance_id="early")
    assert found.ready == before
    await node.kill()  # a successor counts on
    await node.start()
    await until_reported_again(client, "early")
    found = await told(client, instance_id="early")
    assert await node.container_pid("early") == pids[0]
    assert found.ready.status == TRUE
    assert found.container[0].restart_count == 0
    if forwards:
        assert is_alive(pids[1])
