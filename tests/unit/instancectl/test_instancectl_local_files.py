"""`file:` sources: only below the given root, and copies never readable by more users than their source."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.fetch import ContentStore, Sources
from instancectl.content.prepare import _copy
from instancectl.content.unpacking import unpack


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root, with a store and a secret of the node beside it."""
    (tmp_path / "store").mkdir()
    (tmp_path / "node.key").write_text("key")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def obtain(root: Path, name: str, checksum: str = "", *, allowed: bool = True) -> Path:
    """Obtain a file below the root; `allowed`: whether --file-root names it."""
    store = ContentStore(root.parent / "store", Sources(root if allowed else None))
    return store.obtain(f"file://{root / name}", checksum, "file x", Cancel())


def refusal(root: Path, name: str, checksum: str = "", *, allowed: bool = True) -> str:
    """Return why the file is refused, after a check that the store has no part of it."""
    with pytest.raises(PrepareFailed, match=r"^file x: ") as caught:
        obtain(root, name, checksum, allowed=allowed)
    assert not list((root.parent / "store").glob(".*.part"))
    return caught.value.message


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_without_a_root_no_file_is_read_and_the_flag_is_named(root: Path) -> None:
    assert "start instancectl with --file-root DIR" in refusal(root, "app", allowed=False)


def test_without_a_root_not_even_stored_content_is_given(root: Path) -> None:
    (root / "app").write_text("app")
    obtain(root, "app")
    checksum = f"sha256:{hashlib.sha256(b'app').hexdigest()}"
    assert "--file-root DIR" in refusal(root, "app", checksum, allowed=False)


@pytest.mark.parametrize("path", ["../node.key", "a/../../node.key", "../root-of-another/x"])
def test_a_path_that_is_not_below_the_root_is_refused(root: Path, path: str) -> None:
    assert f"is not below --file-root {root}" in refusal(root, path)


def test_a_link_that_leads_out_of_the_root_is_refused(root: Path) -> None:
    (root / "link").symlink_to("../node.key")
    (root / "up").symlink_to("..")
    for path in ("link", "up/node.key"):
        assert f"leads out of --file-root {root}" in refusal(root, path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_directory_is_refused_without_waiting_for_it(root: Path, make: Callable[[Path], None]) -> None:
    make(root / "x")
    assert "is not a regular file" in refusal(root, "x")


def test_files_below_the_root_are_read_through_links_too(root: Path) -> None:
    (root / "v2").mkdir()
    (root / "v2" / "app").write_text("app")
    (root / "current").symlink_to("v2")
    assert obtain(root, "current/app").read_text() == "app"


def test_a_root_that_is_a_link_itself_is_followed(root: Path) -> None:
    (root / "app").write_text("app")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert obtain(alias, "app").read_text() == "app"


@pytest.mark.parametrize(
    ("source", "asked", "copied"),
    [(0o644, 0o755, 0o755), (0o644, 0o4755, 0o755), (0o600, 0o644, 0o600), (0o640, 0o755, 0o700)],
)
def test_a_copy_is_readable_by_others_only_if_its_source_is(root: Path, source: int, asked: int, copied: int) -> None:
    (root / "x").write_text("x")
    (root / "x").chmod(source)
    content = obtain(root, "x")
    assert mode(content) == (0o644 if source & 0o004 else 0o600)
    _copy(content, root / "copy", asked)
    assert mode(root / "copy") == copied


@pytest.mark.parametrize(("source", "others"), [(0o644, 0o005), (0o600, 0)])
def test_an_unpacked_archive_may_be_entered_by_others_only_if_they_may_read_it(
    root: Path, source: int, others: int
) -> None:
    with tarfile.open(root / "a", "w") as tar:
        tar.addfile(tarfile.TarInfo("x"), io.BytesIO())
    (root / "a").chmod(source)
    unpack(obtain(root, "a"), root / "out", "package x", Cancel())
    assert mode(root / "out") & 0o007 == others
