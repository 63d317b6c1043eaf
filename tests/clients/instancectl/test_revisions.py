"""Revisions come, wait, run, and go: files, packages, volumes and scripts, under a real instancectl."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewCtl, NewNode, RunFile
from tests.clients.instancectl.file_server import FileServer
from tests.clients.instancectl.hearsay import told, until_ready
from tests.clients.instancectl.supervised import instance, revision, write
from tests.support.sample_instances import INSTALLED, READY, eventually


@pytest.mark.long
async def test_rolling_back_to_an_installed_revision_fetches_nothing(run_file: RunFile, files: FileServer) -> None:
    old, new = revision("r1", script="cat app; sleep 600"), revision("r2", script="cat app; sleep 600")
    for wanted in (old, new):
        url, checksum = files.add(f"/{wanted.id}", f"program {wanted.id}\n".encode())
        wanted.file.add(name="app", url=url, checksum=checksum)
    old.target = INSTALLED
    ctl = await run_file(instance(old, new))
    await ctl.until("r2", "ready")
    await ctl.until("r1", "installed")
    files.asked.clear()

    old.target, new.target = READY, INSTALLED
    write(ctl.directory.parent / "spec", instance(old, new))
    await ctl.until("r1", "ready")
    await ctl.until("r2", "ready", holds=False, reason="NotWantedReady")
    assert files.asked == []
    await eventually(lambda: ctl.container_log("r1") == "program r1\n")


@pytest.mark.long
async def test_the_old_revision_runs_until_the_new_one_is_installed(run_file: RunFile, files: FileServer) -> None:
    ctl = await run_file(instance(revision("r1")))
    await ctl.until("r1", "ready")
    files.hangs = True
    new = revision("r2")
    url, checksum = files.add("/app", b"program")
    new.file.add(name="app", url=url, checksum=checksum)
    write(ctl.directory.parent / "spec", instance(revision("r1", ready=False), new))
    await ctl.until("r2", "installed", holds=False, reason="Downloading")
    await eventually(lambda: files.asked)
    assert (await ctl.condition("r1", "ready"))["status"] == "CONDITION_STATUS_TRUE"
    files.hangs = False
    await ctl.until("r2", "ready")


@pytest.mark.long
async def test_a_dropped_revision_is_stopped_and_its_files_and_contents_are_removed(
    run_file: RunFile, files: FileServer
) -> None:
    dropped = revision("r1")
    url, checksum = files.add("/big", b"x" * 1000)
    dropped.file.add(name="big", url=url, checksum=checksum)
    ctl = await run_file(instance(dropped))
    await ctl.until("r1", "ready")
    write(ctl.directory.parent / "spec", instance(revision("r2")))
    await ctl.until("r2", "ready")
    left = ctl.directory / "revisions"
    await eventually(lambda: [path.name[:2] for path in left.iterdir()] == ["r2"])
    await eventually(lambda: not list((ctl.directory / "store").glob("sha256/*/*")))
    await eventually(lambda: len(ctl.processes()) == 1)  # in the midst of exec a process shows no environment


async def test_a_wrong_checksum_is_not_installed_and_names_the_file(run_file: RunFile, files: FileServer) -> None:
    wanted = revision()
    url, _ = files.add("/app.bin", b"something else")
    wanted.file.add(name="bin/app", url=url, checksum=f"sha256:{'0' * 64}")
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "installed", holds=False, reason="ChecksumMismatch")
    assert "file bin/app" in found["message"]
    assert ctl.processes() == []


@pytest.mark.long
async def test_a_file_without_a_checksum_is_fetched_only_where_that_is_allowed(
    new_node: NewNode, client: Client, files: FileServer
) -> None:
    url, checksum = files.add("/f", b"x")
    for instance_id, given in (("i-1", ""), ("i-2", checksum)):
        wanted = revision()
        wanted.file.add(name="f", url=url, checksum=given)
        await client.create(instance(wanted, instance_id=instance_id))
    node = await new_node("--fetch-from", "127.0.0.1").start()
    await until_ready(client, instance_id="i-2")

    async def is_refused() -> bool:
        return (await told(client)).installed.reason == "ChecksumMissing"

    await eventually(is_refused)
    assert files.asked == ["/f"]
    await node.kill()
    await node.start("--allow-unchecked")
    await until_ready(client)


async def test_torrent_is_refused_by_name(run_file: RunFile) -> None:
    wanted = revision()
    wanted.package.add(name="data", url="torrent:0123456789abcdef")
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "installed", holds=False, reason="TorrentUnsupported")
    assert "package data: torrent: is not supported" in found["message"]


@pytest.mark.long
async def test_a_missing_file_is_tried_again_until_it_is_there(run_file: RunFile, files: FileServer) -> None:
    wanted = revision()
    wanted.file.add(name="late", url=f"{files.url}/late?token=abc")
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "installed", holds=False, reason="Retrying")
    assert "404" in found["message"]
    assert "token" not in found["message"]
    files.content["/late?token=abc"] = b"here"
    await ctl.until("r1", "ready")


async def test_packages_are_unpacked_volumes_appear_and_scripts_run_in_the_directory(
    run_file: RunFile, tmp_path: Path
) -> None:
    archive = tmp_path / "app.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("bin/run")
        member.size, member.mode = 4, 0o755
        tar.addfile(member, io.BytesIO(b"true"))
    wanted = revision(script="cat app/bin/run data/seen $HQ_REVISION_DIR/made; sleep 600")
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    wanted.package.add(name="app", url=archive.as_uri(), checksum=f"sha256:{checksum}")
    wanted.volume.add(name="data", mount_path="data", persistent=True)
    wanted.prepare.add(name="first", command=["sh", "-c", "echo $HQ_INSTANCE/$HQ_REVISION > made; echo x >> data/seen"])
    ctl = await run_file(instance(wanted), "--file-root", str(tmp_path))
    await ctl.until("r1", "ready")
    await eventually(lambda: ctl.container_log() == "truex\ni-1/r1\n")


async def test_a_file_of_the_node_is_copied_only_below_the_root_that_was_named(
    run_file: RunFile, tmp_path: Path
) -> None:
    (tmp_path / "node.key").write_text("key")
    wanted = revision()
    wanted.file.add(name="stolen", url=(tmp_path / "node.key").as_uri())
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "installed", holds=False, reason="SchemeUnsupported")
    assert "file stolen" in found["message"]
    assert "--file-root DIR" in found["message"]
    assert not list((ctl.directory / "store").rglob("*.part"))


@pytest.mark.long
async def test_a_persistent_volume_outlives_its_revision(run_file: RunFile) -> None:
    def with_volume(revision_id: str) -> list[object]:
        wanted = revision(revision_id, script="echo $HQ_REVISION >> data/seen; cat data/seen; sleep 600")
        wanted.volume.add(name="data", mount_path="data", persistent=True)
        return [wanted]

    ctl = await run_file(instance(*with_volume("r1")))  # type: ignore[arg-type]
    await ctl.until("r1", "ready")
    await eventually(lambda: ctl.container_log("r1") == "r1\n")
    write(ctl.directory.parent / "spec", instance(*with_volume("r2")))  # type: ignore[arg-type]
    await ctl.until("r2", "ready")
    await eventually(lambda: ctl.container_log("r2") == "r1\nr2\n")


@pytest.mark.long
async def test_a_prepare_script_that_takes_too_long_is_killed_and_named(run_file: RunFile) -> None:
    wanted = revision()
    hook = wanted.prepare.add(name="slow", command=["sh", "-c", "echo began; sleep 606"])
    hook.timeout.FromMilliseconds(3000)  # a busy machine takes its time to start a shell
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "installed", holds=False, reason="PrepareScriptTimedOut")
    assert found["message"] == "prepare script slow timed out and was killed; see its log"
    assert "began" in ctl.container_log("r1", "prepare")


@pytest.mark.long
async def test_a_changed_command_restarts_the_container_without_preparing_anew(run_file: RunFile) -> None:
    def wanted(word: str) -> object:
        made = revision(script=f"echo {word}; sleep 600")
        made.prepare.add(command=["sh", "-c", "echo prepared"])
        return made

    ctl = await run_file(instance(wanted("one")))  # type: ignore[arg-type]
    await ctl.until("r1", "ready")
    await eventually(lambda: ctl.container_log() == "one\n")
    write(ctl.directory.parent / "spec", instance(wanted("two")))  # type: ignore[arg-type]
    await eventually(lambda: ctl.container_log() == "one\ntwo\n")
    assert ctl.container_log("r1", "prepare") == "prepared\n"


async def test_the_flag_once_prepares_and_exits_and_starts_nothing(new_ctl: NewCtl, tmp_path: Path) -> None:
    path = write(tmp_path / "spec", instance(revision()))
    ctl = await new_ctl("ctl", "--file", str(path)).start("--once")
    assert await ctl.wait() == 0
    assert ctl.processes() == []
    assert [path.name[:2] for path in (ctl.directory / "revisions").iterdir()] == ["r1"]


@pytest.mark.long
async def test_the_flag_once_fails_if_something_cannot_be_installed(new_ctl: NewCtl, tmp_path: Path) -> None:
    wanted = revision()
    wanted.file.add(name="gone", url=(tmp_path / "gone").as_uri())
    path = write(tmp_path / "spec", instance(wanted))
    ctl = await new_ctl("ctl", "--file", str(path), "--file-root", str(tmp_path)).start("--once")
    assert await ctl.wait() == 1
    assert "file gone" in ctl.log_text()


@pytest.mark.long
async def test_a_directory_is_not_given_to_another_instance(new_ctl: NewCtl, tmp_path: Path) -> None:
    path = write(tmp_path / "spec", instance(revision(), instance_id="i-1"))
    ctl = await new_ctl("ctl", "--file", str(path)).start("--once")
    assert await ctl.wait() == 0
    write(tmp_path / "spec", instance(revision(), instance_id="i-2"))
    await ctl.start()
    assert await ctl.wait() == 1
    assert "belongs to instance i-1" in ctl.log_text()


async def test_a_file_server_that_hangs_does_not_hold_up_the_end_of_instancectl(
    run_file: RunFile, files: FileServer
) -> None:
    wanted = revision()
    files.hangs = True
    wanted.file.add(name="late", url=f"{files.url}/late")
    ctl = await run_file(instance(wanted))
    await eventually(lambda: files.asked)
    assert await ctl.terminate(timeout_s=15.0) == 0
