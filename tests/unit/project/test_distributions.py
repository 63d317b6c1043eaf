"""The two distributions: what a team imports, and everything else."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CLIENT = tomllib.loads((ROOT / "distributions" / "hq-client" / "pyproject.toml").read_text())["project"]
SERVER = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def listed(name: str) -> list[str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def test_the_library_takes_the_ranges_that_are_locked_and_tested() -> None:
    assert set(CLIENT["dependencies"]) <= set(listed("run.in"))


def test_the_servers_depend_on_the_library_of_their_own_version() -> None:
    assert listed("own.in") == [f"{CLIENT['name']}=={CLIENT['version']}"]
    assert CLIENT["version"] == SERVER["version"]


def test_the_library_brings_no_command() -> None:
    assert "scripts" not in CLIENT
