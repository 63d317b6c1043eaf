"""Setup says how to get the compiled transport, and only its figures are published."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from serving import compiled
from tests.bench import tools
from tests.bench.__main__ import cli

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def bootstrap() -> ModuleType:
    spec = spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_with_a_compiler_setup_names_the_command(bootstrap: ModuleType) -> None:
    assert "`make compile`" in bootstrap.advice(can_compile=True)
    assert "apt-get" not in bootstrap.advice(can_compile=True)


def test_without_a_compiler_setup_says_what_to_install_first(bootstrap: ModuleType) -> None:
    assert "apt-get install gcc python3-dev), then `make compile`" in bootstrap.advice(can_compile=False)


def test_figures_of_the_interpreted_transport_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "form", lambda: "interpreted")
    monkeypatch.setattr(tools, "check", lambda: None)
    result = CliRunner().invoke(cli, ["run", "--cases", "lookups", "--out", str(tmp_path / "results.json")])

    assert result.exit_code == 1
    assert "figures are of the compiled transport only: run `make compile`" in result.output
