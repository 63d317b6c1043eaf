"""Instances of a node kept apart: a hostile instance reads nothing of its node, its agent or its neighbours."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from instancectl.processes import procfs
from instancectl.processes.confinement import ProcessUser
from instancectl.settings import BadServiceUser, parse_service_user
from tests.clients.instancectl.conftest import NewNode
from tests.clients.instancectl.hearsay import told, until_ready
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import instance, revision
from tests.support.sample_instances import eventually

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can give instances users of their own")
RUNTIMES = [
    "plain",
    pytest.param("bubblewrap", marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="bwrap is not installed")),
]
SECRET = "hunter2-of-the-victim"


def of_service(service: str, script: str = "exec sleep 600", *, instance_id: str) -> model.Instance:
    made = instance(revision("r1", script), instance_id=instance_id)
    made.meta.service_id = service
    return made


def with_secret(made: model.Instance) -> model.Instance:
    """A secret in a file and in a variable."""
    for name in ("file", "variable"):
        secret = made.spec.revision[0].secret.add(name=name, provider="files", id="password")
        if name == "file":
            secret.file.path = "password"
        else:
            secret.environment_variable = "PASSWORD"
    return made


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir(mode=0o700)
    (tmp_path / "secrets" / "password").write_text(SECRET)
    return tmp_path / "secrets"


def attack(node: NodeProcess, victim: int, secrets: Path) -> str:
    """A script that prints a line for everything that it should not be able to do, then `done`."""
    root = node.directory
    readable = [
        f"{secrets}/password",
        f"{root}/victim/state.json",
        f"{root}/victim/desired.json",
        f"{root}/victim/logs/r1/main.log",
        f"{root}/victim/revisions/*/password",
        f"{root}/victim/store/sha256/*/*",
        f"{root}/attacker/state.json",
        f"{root}/attacker/desired.json",
        f"{root}/+node/users.json",
        f"/proc/{victim}/environ",
        f"/proc/{victim}/cwd/password",
        f"/proc/{node.pid}/environ",
        f"/proc/{node.pid}/maps",
        "/etc/shadow",
    ]
    tries = [f"cat {path} >/dev/null 2>&1 && echo read {path}" for path in readable]
    tries += [
        f'ls {root} >/dev/null 2>&1 && [ -n "$(ls -A {root}/victim 2>/dev/null)" ] && echo listed neighbours',
        f"kill -9 {victim} 2>/dev/null && echo killed a neighbour",
        f"kill -9 {node.pid} 2>/dev/null && echo killed the agent",
        f"touch {root}/victim/x 2>/dev/null && echo wrote to a neighbour",
        f"touch {root}/attacker/x 2>/dev/null && echo wrote beside its revision",
        f"rm -rf {root}/attacker/logs 2>/dev/null; [ -e {root}/attacker/logs ] || echo removed its logs",
        "echo 0 2>/dev/null >/proc/sys/kernel/sysrq && echo wrote to the kernel",
        '[ "$(id -u)" = 0 ] && echo is root',
        '[ "$(id -G)" = "$(id -u)" ] || echo has groups',
        "grep -q '^NoNewPrivs:.1' /proc/self/status || echo may gain privileges",
        "grep '^Cap[PEB]' /proc/self/status | grep -qv '0000000000000000$' && echo has capabilities",
        '[ "$(umask)" = 0077 ] || echo has umask $(umask)',
    ]
    return "; ".join([*tries, "echo done", "exec sleep 600"])


@pytest.mark.long
@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_hostile_instance_reads_nothing_of_others(
    new_node: NewNode, client: Client, secrets: Path, runtime: str
) -> None:
    node = await new_node("--secrets", f"files=dir:{secrets}", "--runtime", runtime).start()
    await client.create(with_secret(of_service("bank", "cat password; echo; exec sleep 600", instance_id="victim")))
    await until_ready(client, instance_id="victim")
    victim = await node.container_pid("victim")
    await eventually(lambda: node.container_log("victim") == f"{SECRET}\n")
    await client.create(of_service("rogue", attack(node, victim, secrets), instance_id="attacker"))
    await eventually(lambda: "done\n" in node.container_log("attacker"))
    assert node.container_log("attacker") == "done\n"
    shown = (await node.instance("attacker"))["revisions"][0]["containers"][0]["isolation"]
    assert shown.endswith(runtime)


@pytest.mark.long
async def test_a_service_keeps_its_one_user_which_no_other_service_ever_gets(new_node: NewNode, client: Client) -> None:
    node = await new_node("--uids", "300000-300009").start()
    for service, instance_id in (("a", "a-1"), ("a", "a-2"), ("b", "b-1")):
        made = of_service(service, instance_id=instance_id)
        made.spec.revision[0].volume.add(name="data", mount_path="data", persistent=True)
        await client.create(made)
        await until_ready(client, instance_id=instance_id)
    pids = [await node.container_pid(each) for each in ("a-1", "a-2", "b-1")]
    # Each is ready before it is its program.
    await eventually(lambda: [*map(procfs.uid_of, pids)] == [300000, 300000, 300001])
    await client.delete("a-1")
    await client.delete("a-2")
    await eventually(lambda: not (node.directory / "a-2").exists())
    await node.kill()
    (node.directory / "+node" / "users.json").unlink()  # lost: what is there keeps its owner
    await node.start()
    await client.create(of_service("c", instance_id="c-1"))
    await until_ready(client, instance_id="c-1")
    pid = await node.container_pid("c-1")
    await eventually(lambda: procfs.uid_of(pid) == 300002)
    volume = node.directory / "b-1" / "volumes" / "data"
    assert (volume.stat().st_uid, stat.S_IMODE(volume.stat().st_mode)) == (300001, 0o700)


@pytest.mark.long
async def test_a_service_runs_as_root_only_if_allowed_and_its_scripts_and_checks_as_the_same_user(
    new_node: NewNode, client: Client
) -> None:
    node = await new_node("--allow-root", "router", "--uids", "300000-300009").start()
    for service in ("router", "web"):
        made = of_service(service, instance_id=service)
        wanted = made.spec.revision[0]
        wanted.prepare.add(command=["sh", "-c", "id -u > prepared"])
        container = wanted.container[0]
        container.post_start.command[:] = ["sh", "-c", "id -u > started"]
        container.readiness_check.exec.command[:] = ["sh", "-c", "id -u > checked"]
        container.readiness_check.timeout.FromSeconds(20)
        await client.create(made)
        await until_ready(client, instance_id=service)
    for service, uid in (("router", "0\n"), ("web", "300000\n")):
        place = next((node.directory / service / "revisions").iterdir())
        files = [place / name for name in ("prepared", "started", "checked")]  # each check empties its file first
        await eventually(lambda files=files, uid=uid: {each.read_text() for each in files} == {uid})  # type: ignore[misc]


@pytest.mark.long
@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_container_that_requires_isolation_does_not_start_without_it(
    new_node: NewNode, client: Client, runtime: str
) -> None:
    node = await new_node("--runtime", runtime, "--uids", "300000-300009").start()
    made = of_service("bank", instance_id="i-1")
    made.spec.revision[0].container[0].isolation = model.ISOLATION_REQUIRED
    await client.create(made)
    if runtime == "bubblewrap":
        await until_ready(client, instance_id="i-1")
        assert (await told(client)).container[0].isolation == "uid 300000, bubblewrap"
        return

    async def is_refused() -> bool:
        return (await told(client)).installed.reason == "IsolationUnavailable"

    await eventually(is_refused)
    assert "main requires isolation, and it would run as uid 300000, plain" in (await told(client)).installed.message
    assert (await node.instance("i-1"))["revisions"][0]["containers"] == []


@pytest.mark.long
async def test_a_service_that_is_given_a_user_of_the_node_keeps_its_files(new_node: NewNode, client: Client) -> None:
    made = of_service("bank", "id -u >> data/users; exec sleep 600", instance_id="i-1")
    made.spec.revision[0].volume.add(name="data", mount_path="data", persistent=True)
    await client.create(made)
    node = await new_node("--uids", "300000-300009").start()
    await until_ready(client, instance_id="i-1")
    pid = await node.container_pid("i-1")
    await node.kill()
    await node.start("--allow-user", "bank=300100")
    await until_ready(client, instance_id="i-1")
    assert await node.container_pid("i-1") == pid  # until its next start
    os.kill(pid, signal.SIGKILL)
    users = node.directory / "i-1" / "volumes" / "data" / "users"
    await eventually(lambda: users.read_text() == "300000\n300100\n")
    assert users.stat().st_uid == 300100


def test_a_user_given_to_a_service_must_exist_and_not_be_root() -> None:
    assert parse_service_user("db=300100").user == ProcessUser(300100, 300100)
    for wrong in ("db=root", "db=0", "db=nobody-has-this-name", "db", "=x"):
        with pytest.raises(BadServiceUser):
            parse_service_user(wrong)
