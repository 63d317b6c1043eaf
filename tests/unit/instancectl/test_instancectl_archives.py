"""Hostile archives: their contents land in their own directory and nowhere else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.unpacking import unpack

FILE, DIRECTORY, SYMLINK, HARD_LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
UNIX_KINDS = {FILE: stat.S_IFREG, DIRECTORY: stat.S_IFDIR, SYMLINK: stat.S_IFLNK, tarfile.FIFOTYPE: stat.S_IFIFO}


class Entry(NamedTuple):
    """A member of an archive; `leads_to`: where a link points."""

    name: str
    kind: bytes = FILE
    leads_to: str = ""
    content: bytes = b""
    mode: int = 0o755


def tar(path: Path, *entries: Entry) -> Path:
    with tarfile.open(path, "w") as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            member.type, member.linkname, member.mode = entry.kind, entry.leads_to, entry.mode
            member.size, member.mtime = len(entry.content), 1_600_000_000
            archive.addfile(member, io.BytesIO(entry.content))
    return path


def zipped(path: Path, *entries: Entry) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for entry in entries:
            member = zipfile.ZipInfo(entry.name)
            member.external_attr = (UNIX_KINDS[entry.kind] | entry.mode) << 16
            archive.writestr(member, entry.leads_to.encode() or entry.content)
    return path


Make = Callable[..., Path]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where archives are unpacked; what stands beside it, `outside`, must stay as it is."""
    (tmp_path / "outside").mkdir()
    return tmp_path / "out"


def unpacked(archive: Path, out: Path) -> dict[str, str]:
    """Unpack the archive; return links as `-> target`, files as their content."""
    unpack(archive, out, "package x", Cancel())
    found = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_symlink() or path.is_file()}
    return {name: f"-> {path.readlink()}" if path.is_symlink() else path.read_text() for name, path in found.items()}


def refusal(archive: Path, out: Path) -> str:
    """Return why the archive is refused, after a check that nothing lies or leads outside."""
    with pytest.raises(PrepareFailed) as caught:
        unpack(archive, out, "package x", Cancel())
    assert caught.value.message.startswith("package x: cannot be unpacked: ")
    assert sorted(path.name for path in out.parent.iterdir() if path != archive) == ["out", "outside"]
    assert list((out.parent / "outside").iterdir()) == []
    assert not [path for path in out.rglob("*") if path.is_symlink()]
    return caught.value.message


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize("kind", [FILE, DIRECTORY, SYMLINK])
@pytest.mark.parametrize("name", ["/absolute", "../escaped", "a/../../escaped", "a/.."])
def test_a_name_that_is_absolute_or_goes_up_is_refused(
    tmp_path: Path, out: Path, make: Make, kind: bytes, name: str
) -> None:
    leads_to = "x" if kind == SYMLINK else ""
    assert repr(name)[:-1] in refusal(make(tmp_path / "a", Entry(name, kind, leads_to)), out)


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize("leads_to", ["/etc", "..", "../outside", "a/../../outside", "a/b/../../.."])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, out: Path, make: Make, leads_to: str) -> None:
    refusal(make(tmp_path / "a", Entry("a/b", DIRECTORY), Entry("link", SYMLINK, leads_to)), out)


@pytest.mark.parametrize("make", [tar, zipped])
def test_links_that_lead_out_only_together_are_refused(tmp_path: Path, out: Path, make: Make) -> None:
    """`x` stays inside until `d` exists."""
    assert "'x'" in refusal(make(tmp_path / "a", Entry("x", SYMLINK, "d/.."), Entry("d", SYMLINK, ".")), out)


def test_a_link_through_a_path_that_does_not_exist_is_refused(tmp_path: Path, out: Path) -> None:
    assert "by way of 'a/d'" in refusal(tar(tmp_path / "a", Entry("a/x", SYMLINK, "d/../../../outside")), out)


def test_a_link_that_takes_the_place_of_another_one_does_not_lead_out(tmp_path: Path, out: Path) -> None:
    inside_seen_from_a_b = Entry("link", SYMLINK, "../../outside")
    archive = tar(tmp_path / "a", Entry("a/b/c", DIRECTORY), Entry("link", SYMLINK, "a/b/c"), inside_seen_from_a_b)
    refusal(archive, out)


def long_chain() -> Iterator[Entry]:
    """Links inside links, together longer than a path may be: Python 3.11.7 does not follow them to the end."""
    name, steps, path = "d" * 247, "abcdefghijklmnop", ""
    for step in steps:
        yield Entry(f"{path}{name}", DIRECTORY)
        yield Entry(f"{path}{step}", SYMLINK, name)
        path += f"{name}/"
    up = "/".join(steps) + "/" + "l" * 254
    yield Entry(up, SYMLINK, "../" * len(steps))
    yield Entry("escape", SYMLINK, f"{up}/../outside")


@pytest.mark.parametrize("last", [Entry("escape/flag", content=b"evil"), Entry("flag", HARD_LINK, "escape/flag")])
def test_a_chain_of_links_that_is_too_long_to_follow_writes_nothing_outside(
    tmp_path: Path, out: Path, last: Entry
) -> None:
    refusal(tar(tmp_path / "a", *long_chain(), last), out)


@pytest.mark.parametrize("make", [tar, zipped])
def test_links_that_go_round_in_circles_are_refused(tmp_path: Path, out: Path, make: Make) -> None:
    assert "in circles" in refusal(make(tmp_path / "a", Entry("a", SYMLINK, "b"), Entry("b", SYMLINK, "a")), out)


@pytest.mark.parametrize("make", [tar, zipped])
def test_nothing_is_written_through_a_link(tmp_path: Path, out: Path, make: Make) -> None:
    entries = (Entry("d", DIRECTORY), Entry("link", SYMLINK, "d"), Entry("link/x", content=b"x"))
    assert "'link/x' would be written through a link" in refusal(make(tmp_path / "a", *entries), out)


@pytest.mark.parametrize("leads_to", ["/etc/passwd", "../outside", "not-there", "d"])
def test_a_hard_link_to_anything_but_a_file_of_the_archive_is_refused(tmp_path: Path, out: Path, leads_to: str) -> None:
    refusal(tar(tmp_path / "a", Entry("d", DIRECTORY), Entry("link", HARD_LINK, leads_to)), out)


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"?"])
def test_a_device_a_pipe_or_an_unknown_kind_is_refused(tmp_path: Path, out: Path, kind: bytes) -> None:
    assert "is not a file, directory or link" in refusal(tar(tmp_path / "a", Entry("x", kind)), out)


def test_a_pipe_in_a_zip_is_refused(tmp_path: Path, out: Path) -> None:
    assert "is not a file, directory or link" in refusal(zipped(tmp_path / "a", Entry("x", tarfile.FIFOTYPE)), out)


def test_an_archive_is_unpacked_only_into_an_empty_directory(tmp_path: Path, out: Path) -> None:
    """Two archives in one directory could make links that lead out only together."""
    unpacked(tar(tmp_path / "a", Entry("a")), out)
    with pytest.raises(PrepareFailed, match="its directory is not empty"):
        unpack(tar(tmp_path / "b", Entry("b")), out, "package x", Cancel())


def test_a_file_that_is_no_archive_is_refused_as_such(tmp_path: Path, out: Path) -> None:
    (tmp_path / "a").write_text("no archive")
    assert "neither a tar" in refusal(tmp_path / "a", out)


def test_a_truncated_tar_is_refused_as_such(tmp_path: Path, out: Path) -> None:
    archive = tar(tmp_path / "a", Entry("x", content=b"x" * 5000))
    os.truncate(archive, 3000)
    assert "unexpected end of data" in refusal(archive, out)


# --- what is unpacked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tar, zipped])
def test_files_directories_and_links_that_stay_inside_are_unpacked(tmp_path: Path, out: Path, make: Make) -> None:
    archive = make(
        tmp_path / "a",
        Entry("./", DIRECTORY),
        Entry("lib/v2/lib.so.2", content=b"code"),
        Entry("lib/current", SYMLINK, "v2"),
        Entry("bin/lib.so", SYMLINK, "../lib/current/../v2/lib.so.2"),
        Entry("dangling", SYMLINK, "comes/later"),
    )
    assert unpacked(archive, out) == {
        "lib/v2/lib.so.2": "code",
        "lib/current": "-> v2",
        "bin/lib.so": "-> ../lib/current/../v2/lib.so.2",
        "dangling": "-> comes/later",
    }
    assert (out / "bin/lib.so").read_text() == "code"


def test_a_hard_link_to_a_file_or_to_a_symbolic_link_is_kept(tmp_path: Path, out: Path) -> None:
    entries = (
        Entry("a", content=b"a"),
        Entry("b", HARD_LINK, "a"),
        Entry("s", SYMLINK, "a"),
        Entry("t", HARD_LINK, "s"),
    )
    assert unpacked(tar(tmp_path / "a.tar", *entries), out) == {"a": "a", "b": "a", "s": "-> a", "t": "-> a"}
    assert (out / "a").samefile(out / "b")


def test_of_members_with_one_name_the_last_stays_and_overwrites_no_other_file(tmp_path: Path, out: Path) -> None:
    entries = (
        Entry("a", content=b"one"),
        Entry("b", HARD_LINK, "a"),
        Entry("b", content=b"two"),
        Entry("c", SYMLINK, "a"),
    )
    assert unpacked(tar(tmp_path / "a.tar", *entries, Entry("c", content=b"three")), out) == {
        "a": "one",
        "b": "two",
        "c": "three",
    }


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize(
    ("mode", "left"), [(0o755, 0o755), (0o6755, 0o755), (0o777, 0o755), (0o644, 0o644), (0o400, 0o600)]
)
def test_modes_are_kept_without_set_uid_and_write_access_of_others(
    tmp_path: Path, out: Path, make: Make, mode: int, left: int
) -> None:
    unpacked(make(tmp_path / "a", Entry("run", mode=mode)), out)
    assert stat.S_IMODE((out / "run").stat().st_mode) == left


def test_times_are_kept(tmp_path: Path, out: Path) -> None:
    """Python reads compiled modules only beside sources of the recorded time."""
    unpacked(tar(tmp_path / "a", Entry("x")), out)
    assert (out / "x").stat().st_mtime == 1_600_000_000
