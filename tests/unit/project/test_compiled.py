"""The compiled transport of a checkout is used only if it was built from these sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from serving import compiled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one compiled module and the record that it was built from these sources."""
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delenv("SERVING_INTERPRETED", raising=False)
    (tmp_path / "serving" / "h2").mkdir(parents=True)
    (tmp_path / "serving" / "h2" / f"machine{compiled.SUFFIX}").touch()
    compiled.record().write_text(compiled.digest())
    return tmp_path


def is_used() -> bool:
    before = len(sys.meta_path)
    compiled.use()
    return len(sys.meta_path) > before


def test_compiled_modules_of_these_sources_are_preferred(folder: Path) -> None:
    assert is_used()
    spec = sys.meta_path[0].find_spec("serving.h2.machine", None)
    assert spec is not None
    assert spec.origin == str(folder / "serving" / "h2" / f"machine{compiled.SUFFIX}")


def test_modules_that_were_not_compiled_are_left_to_other_finders(folder: Path) -> None:
    assert folder.exists()
    assert is_used()
    assert [sys.meta_path[0].find_spec(name, None) for name in ("serving.h2", "serving.flags", "json")] == [None] * 3


def test_an_edited_source_is_interpreted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.exists()
    monkeypatch.setattr(compiled, "digest", lambda: "of other sources")
    assert not is_used()


def test_a_partly_compiled_transport_is_not_used(folder: Path) -> None:
    assert folder.exists()
    compiled.record().unlink()  # written last
    assert not is_used()


def test_the_environment_can_forbid_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.exists()
    monkeypatch.setenv("SERVING_INTERPRETED", "1")
    assert not is_used()
