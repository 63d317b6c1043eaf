"""What instancectl writes: whole or not at all, and nowhere else."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.directories import inside
from instancectl.content.fetch import ContentStore, Sources, check_scheme, redacted_url
from instancectl.content.secrets import CommandProvider, DirectoryProvider, SecretMissing, SecretValues, deliver
from instancectl.content.spec_faults import faults
from instancectl.files import write_atomically
from instancectl.processes.child import ProcessExit
from instancectl.processes.commands import CommandResult
from instancectl.processes.limits import CgroupLimits, Limit, ProcessLimits, best_limiter
from instancectl.processes.procfs import ProcessId
from instancectl.settings import BadProvider, parse_provider
from instancectl.state import RunningChild, StateFile, StateUnreadable
from instancectl.wanted import desired as wishes
from instancectl.wanted.desired import Desired, RevisionContentKey
from tests.support.sample_instances import READY

NOW = Cancel()


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_atomically(target, "no bytes")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("bad", ["", ".", "../x", "/etc/x", "a/../../x", "link/x"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, bad: str) -> None:
    directory = tmp_path / "revision"
    directory.mkdir()
    (directory / "link").symlink_to(tmp_path)
    with pytest.raises(PrepareFailed, match="file x"):
        inside(directory, bad, "file x")


# --- store and fetching -------------------------------------------------------------------------------------------


def stored(tmp_path: Path, content: bytes) -> tuple[ContentStore, str, str]:
    source = tmp_path / "source"
    source.write_bytes(content)
    return (
        ContentStore(tmp_path / "store", Sources(tmp_path)),
        source.as_uri(),
        f"sha256:{hashlib.sha256(content).hexdigest()}",
    )


def test_content_with_a_known_checksum_is_fetched_once(tmp_path: Path) -> None:
    store, url, checksum = stored(tmp_path, b"content")
    (tmp_path / "store").mkdir()
    path = store.obtain(url, checksum, "file x", NOW)
    (tmp_path / "source").unlink()
    assert store.obtain(url, checksum, "file x", NOW) == path
    assert path.read_bytes() == b"content"


def test_damaged_content_is_fetched_again(tmp_path: Path) -> None:
    store, url, checksum = stored(tmp_path, b"content")
    (tmp_path / "store").mkdir()
    path = store.obtain(url, checksum, "file x", NOW)
    path.write_bytes(b"damage!")
    assert store.obtain(url, checksum, "file x", NOW).read_bytes() == b"content"


def test_content_with_a_wrong_checksum_is_not_kept(tmp_path: Path) -> None:
    store, url, _ = stored(tmp_path, b"content")
    (tmp_path / "store").mkdir()
    with pytest.raises(PrepareFailed, match="file x: the checksum is"):
        store.obtain(url, f"sha256:{'1' * 64}", "file x", NOW)
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("scheme", ["torrent:", "magnet:?xt=", "rbtorrent:"])
def test_torrents_are_refused_by_name(scheme: str) -> None:
    with pytest.raises(PrepareFailed, match=scheme.partition(":")[0]):
        check_scheme(f"{scheme}abc", "package x")


def test_an_address_is_shown_without_possible_credentials() -> None:
    assert redacted_url("https://user:pw@host:8443/a/b?token=abc#x") == "https://host:8443/a/b"


# --- secrets --------------------------------------------------------------------------------------------------------


def secret(secret_id: str, key: str = "", version: str = "") -> model.SecretDescriptor:
    return model.SecretDescriptor(name="db", provider="safe", id=secret_id, key=key, version=version)


async def test_a_directory_gives_files_by_id_version_and_key(tmp_path: Path) -> None:
    (tmp_path / "db@2").mkdir()
    (tmp_path / "db@2" / "password").write_text("value")
    provider = DirectoryProvider(tmp_path)
    assert await provider.value(secret("db", key="password", version="2"), "web") == b"value"


async def test_a_secret_outside_of_the_directory_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("value")
    with pytest.raises(SecretMissing, match="points outside"):
        await DirectoryProvider(tmp_path / "kept").value(secret("../outside"), "web")


class Recorded:
    """Records commands instead of running them."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    async def capture(self, command: list[str], **_: object) -> CommandResult:
        self.ran.append(command)
        return CommandResult(ProcessExit(0), output=b"value")


@pytest.mark.parametrize("bad", [("--help", "", ""), ("web", "--address=x", ""), ("web", "a", "-x"), ("web", "\0", "")])
async def test_a_spec_cannot_pass_options_to_a_providers_command(bad: tuple[str, str, str]) -> None:
    commands = Recorded()
    provider = CommandProvider(["get"], commands)  # type: ignore[arg-type]
    with pytest.raises(SecretMissing, match="begins with a dash, or contains NUL"):
        await provider.value(secret(*bad), "web")
    assert await provider.value(secret("web", "a-b", "2"), "web") == b"value"
    assert commands.ran == [["get", "web", "a-b", "2"]]


async def test_a_version_cannot_point_to_another_secret(tmp_path: Path) -> None:
    (tmp_path / "web@2").mkdir()
    (tmp_path / "web@2" / "db").write_text("that of service web@2")
    with pytest.raises(SecretMissing, match="points to another secret"):
        await DirectoryProvider(tmp_path).value(secret("web", version="2/db"), "web")


async def test_an_unknown_provider_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing, match=r"secret db: unknown provider 'safe' \(known: vault\)"):
        await SecretValues({"vault": DirectoryProvider(tmp_path)}).value(secret("db"), "web")


def test_a_value_is_never_in_a_repr_or_error(tmp_path: Path) -> None:
    wanted = secret("db")
    wanted.file.path, wanted.file.owner = "conf/db", "no-such-user-here"
    with pytest.raises(PrepareFailed) as caught:
        deliver(wanted, b"canary", tmp_path)
    assert "canary" not in repr(caught.value)
    assert "no-such-user-here" in caught.value.message
    assert list(tmp_path.rglob("db")) == []


@pytest.mark.parametrize("bad", ["vault", "vault=", "vault=dir", "vault=dir:", "vault=http://x"])
def test_a_provider_that_is_written_wrongly_is_explained(bad: str) -> None:
    with pytest.raises(BadProvider, match="NAME=dir:PATH"):
        parse_provider(bad)


# --- state ----------------------------------------------------------------------------------------------------------


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    key = RevisionContentKey("r1", "ab" * 32)
    child = RunningChild(key, "main", "d", ProcessId(12, 34, "boot"), "mark", "", "rlimit", 10.0, 5.0, 2)
    state = StateFile(tmp_path / "state.json")
    state.set_owner("i-1", "node-1")
    state.add_installed(key, ["c2", "c1"])
    state.add_child(child)
    assert StateFile(tmp_path / "state.json").state == state.state
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600


def test_the_result_of_checks_is_written_only_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    key = RevisionContentKey("r1", "ab")
    state = StateFile(path)
    state.add_child(RunningChild(key, "main", "d", ProcessId(12, 34, "boot"), "mark", "", "rlimit", 10.0, 5.0, 2))
    state.record_check(key, "main", is_ready=True, failed_checks=1)
    (found,) = StateFile(path).state.children.values()
    assert (found.is_ready, found.failed_checks) == (True, 1)
    written = path.stat().st_ino
    state.record_check(key, "main", is_ready=True, failed_checks=1)
    state.record_check(key, "gone", is_ready=True, failed_checks=0)
    assert path.stat().st_ino == written


def test_a_child_without_recorded_checks_counts_as_not_ready(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    key = RevisionContentKey("r1", "ab")
    child = RunningChild(key, "main", "d", ProcessId(12, 34, "boot"), "mark", "", "rlimit", 10.0, 5.0, 2)
    StateFile(path).add_child(child)
    document = json.loads(path.read_text())
    del document["checks"]
    path.write_text(json.dumps(document))
    assert list(StateFile(path).state.children.values()) == [child]


def test_a_child_is_stored_with_the_fields_of_the_first_release_and_unknown_ones_are_ignored(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.json"
    key = RevisionContentKey("r1", "ab")
    child = RunningChild(key, "main", "d", ProcessId(12, 34, "boot"), "mark", "", "rlimit", 10.0, 5.0, 2)
    StateFile(path).add_child(child)
    document = json.loads(path.read_text())
    first = "revision container container_digest process mark group limits grace_s started_wall_s restarts"
    assert list(document["children"][0]) == first.split()
    document["children"][0]["of_a_later_version"] = 1
    path.write_text(json.dumps(document))
    assert list(StateFile(path).state.children.values()) == [child]


def test_children_stored_when_containers_were_called_sections_are_found(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    key = RevisionContentKey("r1", "ab")
    child = RunningChild(key, "main", "d", ProcessId(12, 34, "boot"), "mark", "", "rlimit", 10.0, 5.0, 2)
    StateFile(path).add_child(child)
    path.write_text(path.read_text().replace('"container', '"section'))
    assert list(StateFile(path).state.children.values()) == [child]


def test_a_damaged_state_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"owner":')
    with pytest.raises(StateUnreadable, match="stop this instance's processes"):
        StateFile(tmp_path / "state.json")


def test_the_last_good_copy_is_read_as_written_and_private(tmp_path: Path) -> None:
    revision = model.InstanceRevision(id="r1", target=READY, secret=[secret("x")])
    desired = Desired("i-1", "node-1", (revision,), model.ResourceAllocation(host="h"), 2**62, 7, "e1")
    wishes.save(tmp_path / "copy", desired)
    assert wishes.load(tmp_path / "copy") == desired
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600


def test_a_damaged_copy_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("{")
    assert wishes.load(tmp_path / "copy") is None


# --- limits ---------------------------------------------------------------------------------------------------------


def test_without_cgroups_limits_hold_per_process_and_the_description_says_so(tmp_path: Path) -> None:
    limiter = best_limiter("i-1", tmp_path, "/")
    assert isinstance(limiter, ProcessLimits)
    assert limiter.grip("main", Limit(500, 1 << 20)).description.endswith("per process, cpu not limited")


def test_a_cgroup_that_delegates_memory_and_cpu_is_used(tmp_path: Path) -> None:
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (tmp_path / name).write_text("cpu memory pids")
    limiter = best_limiter("i-1", tmp_path, "/")
    assert isinstance(limiter, CgroupLimits)
    grip = limiter.grip("main", Limit(500, 1 << 20))
    assert grip.group is not None
    assert (grip.group / "cpu.max").read_text() == "50000 100000"
    assert (grip.group / "memory.max").read_text() == str(1 << 20)
    grip.take(123)
    assert (grip.group / "cgroup.procs").read_text() == "123"


# --- validate -------------------------------------------------------------------------------------------------------


def test_validate_names_everything_that_instancectl_could_not_run() -> None:
    one = model.InstanceRevision(id="r1", target=READY)
    one.container.add(name="web", image="registry/web", command=["web"]).readiness_check.tcp.port = "http"
    one.package.add(name="data", url="torrent:abc")
    found = "\n".join(faults(Desired("i-1", "n", (one, model.InstanceRevision(id="r2", target=READY)))))
    for fault in ("r1, r2 are READY", "images and layers", "port 'http'", "torrent: is not supported"):
        assert fault in found
