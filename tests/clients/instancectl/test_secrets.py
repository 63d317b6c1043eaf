"""Secrets reach their file or variable and nothing else: a canary is searched for everywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from instancectl.processes import procfs
from tests.clients.instancectl.conftest import NewCtl, RunFile
from tests.clients.instancectl.supervised import NODE, Ctl, instance, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

CANARY = "canary-5b1e7c90aa"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory of secrets: `db` with key `password`, `token` without keys."""
    kept = tmp_path / "kept"
    (kept / "db").mkdir(parents=True, mode=0o700)
    (kept / "db" / "password").write_text(f"{CANARY}-file")
    (kept / "token").write_text(f"{CANARY}-variable\n")
    return kept


def with_secrets(script: str = "exec sleep 600") -> model.InstanceRevision:
    """Both kinds of secrets."""
    made = revision(script=script)
    made.secret.add(name="password", provider="safe", id="db", key="password").file.path = "conf/password"
    made.secret.add(name="token", provider="safe", id="token").environment_variable = "TOKEN"
    return made


async def test_a_secret_file_has_the_mode_asked_for_and_a_variable_its_value(run_file: RunFile, kept: Path) -> None:
    wanted = with_secrets("cat conf/password | wc -c; echo ${#TOKEN}; exec sleep 600")
    wanted.secret[0].file.mode = 0o440
    ctl = await run_file(instance(wanted), "--secrets", f"safe=dir:{kept}")
    await ctl.until("r1", "ready")
    [path] = (ctl.directory / "revisions").glob("*/conf/password")
    assert path.read_text() == f"{CANARY}-file"
    assert stat.S_IMODE(path.stat().st_mode) == 0o440
    lengths = [len(f"{CANARY}-file"), len(f"{CANARY}-variable")]
    await eventually(lambda: ctl.container_log().split() == [str(n) for n in lengths])


async def test_the_default_mode_is_for_the_owner_alone_and_an_owner_may_be_named(run_file: RunFile, kept: Path) -> None:
    wanted = with_secrets()
    if os.getuid() == 0:
        wanted.secret[0].file.owner = "1234:1235"
    ctl = await run_file(instance(wanted), "--secrets", f"safe=dir:{kept}")
    await ctl.until("r1", "installed")
    [path] = (ctl.directory / "revisions").glob("*/conf/password")
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o400
    if os.getuid() == 0:
        assert (found.st_uid, found.st_gid) == (1234, 1235)


async def test_a_mode_that_shows_a_secret_to_everybody_is_refused(run_file: RunFile, kept: Path) -> None:
    wanted = with_secrets()
    wanted.secret[0].file.mode = 0o444
    ctl = await run_file(instance(wanted), "--secrets", f"safe=dir:{kept}")
    told = await ctl.until("r1", "installed", holds=False, reason="SecretModeTooOpen")
    assert "secret password" in told["message"]
    assert not list((ctl.directory / "revisions").glob("*/conf/password"))


@pytest.mark.long
async def test_a_container_with_a_missing_secret_says_so_and_starts_once_it_is_there(
    run_file: RunFile, kept: Path
) -> None:
    (kept / "token").rename(kept / "not-yet")
    ctl = await run_file(instance(with_secrets()), "--secrets", f"safe=dir:{kept}")
    told = await ctl.until("r1", "installed", holds=False, reason="SecretMissing")
    assert "secret token: cannot read token" in told["message"]
    assert ctl.processes() == []
    (kept / "not-yet").rename(kept / "token")
    await ctl.until("r1", "ready")


@pytest.mark.long
async def test_a_container_is_adopted_while_its_secrets_are_away_and_checked_once_they_are_back(
    run_file: RunFile, kept: Path
) -> None:
    wanted = with_secrets()
    check = wanted.container[0].readiness_check
    check.exec.command[:] = ["sh", "-c", 'test -n "$TOKEN"']
    check.period.FromMilliseconds(100)
    ctl = await run_file(instance(wanted), "--secrets", f"safe=dir:{kept}")
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    await ctl.kill()
    away = kept.rename(kept.with_name("away"))
    await ctl.start()
    await eventually(lambda: "lack a secret" in ctl.log_text())
    await eventually(lambda: ctl.processes() == [pid], what="a check that was under way at SIGKILL has ended")
    away.rename(kept)
    await ctl.until("r1", "ready")
    assert await ctl.container_pid() == pid
    assert await ctl.terminate() == 0
    assert ctl.processes() == []


async def test_a_provider_command_gives_values_and_its_failure_shows_none(run_file: RunFile, tmp_path: Path) -> None:
    command = tmp_path / "provider"
    asked = tmp_path / "asked"
    say = f'echo "{CANARY}-$1-$2"; echo "{CANARY}" >&2; echo "$HQ_SERVICE" > {asked}; test "$1" = db'
    command.write_text(f"#!/bin/sh\n{say}\n")
    command.chmod(0o700)
    wanted = instance(with_secrets())
    wanted.meta.service_id = "web"
    ctl = await run_file(wanted, "--secrets", f"safe=command:{command}")
    told = await ctl.until("r1", "installed", holds=False, reason="SecretMissing")
    assert told["message"] == "secret token: the provider's command exited with 1"
    assert asked.read_text() == "web\n", "so that a provider can refuse what is not this service's"
    assert CANARY not in ctl.log_text()


async def test_no_canary_is_found_in_any_log_report_error_state_or_process(
    new_ctl: NewCtl, kept: Path, client: Client, hq: ReplicaProcess
) -> None:
    failing = with_secrets()
    failing.id, failing.target = "r2", model.REVISION_TARGET_INSTALLED
    failing.prepare.add(name="leaks", command=["sh", "-c", "cat conf/password >/dev/null; exit 3"])
    await client.create(instance(with_secrets("sleep 609 & echo forked; wait"), failing))
    arguments = ("--instance", "i-1", "--node", NODE, "--server", hq.grpc, "--secrets", f"safe=dir:{kept}", "-v")
    ctl = await new_ctl("ctl", *arguments).start()
    await ctl.until("r1", "ready")
    await ctl.until("r2", "installed", holds=False, reason="PrepareScriptFailed")

    async def reported() -> bool:
        found = (await client.get("i-1")).instance.status
        return found.ready.status == model.CONDITION_STATUS_TRUE and len(found.revision) == 2

    await eventually(reported)
    await eventually(lambda: "forked" in ctl.container_log())
    assert CANARY not in str((await client.get("i-1")).instance)
    assert CANARY not in str(await client.explain("i-1"))
    assert CANARY not in str(await ctl.status())
    assert CANARY not in ctl.log_text() + hq.log_text()
    _search_processes(ctl)
    await ctl.kill()  # what lies on the disk after a sudden end, too
    _search_files(ctl)


def _search_files(ctl: Ctl) -> None:
    secret_files = [path for path in ctl.directory.rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert {path.relative_to(ctl.directory).parts[2:] for path in secret_files} == {("conf", "password")}
    for path in secret_files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o400


def _search_processes(ctl: Ctl) -> None:
    """Command lines of all processes; environments of all but the container's, where the variable was asked for."""
    containers = set(ctl.processes())
    assert len(containers) == 2
    ours = [ctl.pid, *containers]
    holders = set()
    for pid in ours:
        for name in ("cmdline", "comm", "status", "environ"):
            if CANARY.encode() in Path(f"/proc/{pid}/{name}").read_bytes():
                holders.add((pid, name))
    assert holders == {(pid, "environ") for pid in containers}
    assert all(stat.S_IMODE(Path(f"/proc/{pid}/environ").stat().st_mode) == 0o400 for pid in containers)
    lines = (Path(f"/proc/{pid}/cmdline") for pid in procfs.pids())
    assert not [line for line in lines if line.exists() and CANARY.encode() in _read(line)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended
        return b""
