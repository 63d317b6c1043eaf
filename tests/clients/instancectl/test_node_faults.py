"""What goes wrong in some instances of a node is not noticed by the others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import NewNode, StartHq
from tests.clients.instancectl.hearsay import TRUE, told, until_ready
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

FORKS = "i=0; while [ $i -lt 5000 ]; do sleep 600 & i=$((i+1)); done; wait"
FLOODS = """exec python3 -c '
import os, time
while True:
    os.write(1, (b"x" * 99 + b"\\n") * 20000)
    time.sleep(0.01)
'"""
ZOMBIES = """exec python3 -c '
import os, time
for _ in range(1000):
    if os.fork() == 0:
        os._exit(0)
print("1000 zombies", flush=True)
time.sleep(600)
'"""


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """One that does not take a busy machine for silence."""
    return await start_hq("--liveness-timeout", "120s")


def of_its_own(name: str, made: model.InstanceRevision) -> model.Instance:
    """An instance of a service of its own."""
    found = instance(made, instance_id=name)
    found.meta.service_id = name
    return found


def witness(name: str) -> model.Instance:
    made = revision("r1")
    made.container[0].readiness_check.exec.command[:] = ["true"]
    made.container[0].readiness_check.period.FromSeconds(1)
    made.container[0].readiness_check.timeout.FromSeconds(30)
    return instance(made, instance_id=name)


def troublemakers() -> list[model.Instance]:
    forks = revision(script=FORKS)
    forks.container[0].limit.pids = 100
    broken = revision()
    broken.file.add(name="f", url="file:///etc/passwd")
    del broken.container[0].command[:]
    hook = revision()
    hook.container[0].post_start.command[:] = ["sh", "-c", "trap '' TERM; sleep 600"]
    hook.container[0].post_start.timeout.FromSeconds(600)
    stopped = revision(script="kill -STOP $$")
    stopped.container[0].readiness_check.exec.command[:] = ["false"]
    programs = {
        "forks": forks,
        "broken": broken,
        "hook": hook,
        "stopped": stopped,
        "floods": revision(script=FLOODS),
        "zombies": revision(script=ZOMBIES),
    }
    return [of_its_own(name, made) for name, made in programs.items()]


async def check_that_nobody_noticed(node: NodeProcess, client: Client, pid: int) -> None:
    """The witness runs on, not restarted, and the agent starts a new one."""
    await client.create(witness("late"))
    await until_ready(client, instance_id="late")
    assert await node.container_pid("early") == pid
    assert is_alive(pid)
    found = await told(client, instance_id="early")
    assert (found.ready.status, found.container[0].restart_count) == (TRUE, 0)


async def early_witness(node: NodeProcess, client: Client) -> int:
    await client.create(witness("early"))
    await until_ready(client, instance_id="early")
    return await node.container_pid("early")


async def test_programs_that_misbehave_do_not_disturb_other_instances(new_node: NewNode, client: Client) -> None:
    """A fork bomb, a flood of output, zombies, a hung hook, a stopped process, a broken specification."""
    node = await new_node("--log-bytes", "1000000").start()
    pid = await early_witness(node, client)
    changes = (await told(client, instance_id="early")).ready.last_transition_time.ToNanoseconds()
    for made in troublemakers():
        await client.create(made)
    await eventually(lambda: "1000 zombies" in node.container_log("zombies"), 60.0)
    await eventually(lambda: (node.directory / "floods/logs/r1/main.log.1").exists(), 60.0)
    await eventually(lambda: "fork" in node.container_log("forks"), 60.0, "the fork bomb to reach its limit")
    await check_that_nobody_noticed(node, client, pid)
    assert (await told(client, instance_id="early")).ready.last_transition_time.ToNanoseconds() == changes
    assert (await told(client, instance_id="broken")).installed.status == model.CONDITION_STATUS_FALSE
    assert disk_use(node.directory / "floods" / "logs") < 600_000_000


def disk_use(directory: Path) -> int:
    used = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):  # logs are renamed under whoever looks at them
            used += path.stat().st_size
    return used


@contextmanager
def full_disk(directory: Path) -> Iterator[None]:
    """A file system of 256 KiB for one instance."""
    directory.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a file system")
async def test_a_full_disk_of_one_instance_does_not_disturb_the_others(new_node: NewNode, client: Client) -> None:
    node = new_node()
    with full_disk(node.directory / "full"):
        await node.start()
        pid = await early_witness(node, client)
        filled = revision("r1", "cat /dev/zero > filled; echo full; exec sleep 600")
        await client.create(of_its_own("full", filled))
        await eventually(lambda: any(path.stat().st_size > 100_000 for path in node.directory.glob("full/*/*/filled")))
        await check_that_nobody_noticed(node, client, pid)
        await node.kill()
        await node.start()
        assert await node.container_pid("early") == pid


async def test_hung_mounts_of_many_instances_do_not_disturb_the_others(
    new_node: NewNode, client: Client, tmp_path: Path
) -> None:
    """A file that never answers a read stands in for a mount whose server is gone."""
    os.mkfifo(tmp_path / "hung")
    node = await new_node("--secrets", f"dead=dir:{tmp_path}").start()
    pid = await early_witness(node, client)
    for number in range(40):
        made = revision("r1")
        made.secret.add(name="s", provider="dead", id="hung", environment_variable="S")
        await client.create(of_its_own(f"hung-{number}", made))

    async def all_hang() -> bool:
        found = [await node.instance(f"hung-{number}") for number in range(40)]
        return all(each.get("revisions") for each in found)

    await eventually(all_hang, 60.0)
    await check_that_nobody_noticed(node, client, pid)
    assert await node.terminate() == 0
    assert is_alive(pid)
