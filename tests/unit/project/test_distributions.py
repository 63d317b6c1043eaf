"""The two distributions: what a team imports, and everything else."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CLIENT = tomllib.loads((ROOT / "distributions" / "hq-client" / "pyproject.toml").read_text())["project"]
_ROOT_FILE = tomllib.loads((ROOT / "pyproject.toml").read_text())
SERVER, TOOL = _ROOT_FILE["project"], _ROOT_FILE["tool"]


def listed(name: str) -> list[str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def test_the_library_takes_the_ranges_that_are_locked_and_tested() -> None:
    assert set(CLIENT["dependencies"]) <= set(listed("run.in"))


def test_the_servers_depend_on_the_library_of_their_own_version() -> None:
    assert listed("own.in") == [f"{CLIENT['name']}=={CLIENT['version']}"]
    assert CLIENT["version"] == SERVER["version"]


def test_both_may_be_used_under_the_licence_of_the_repository() -> None:
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()
    for project in (CLIENT, SERVER):
        assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])


def test_versions_are_asked_of_the_distribution_by_its_name() -> None:
    """`hq` is a stranger's package: its version would be shown as ours."""
    packages = {name.partition(".")[0] for name in TOOL["setuptools"]["packages"]["find"]["include"]}
    folders = [ROOT / TOOL["setuptools"]["package-dir"].get(name, name) for name in sorted(packages)]
    asked = {
        name
        for folder in folders
        for path in folder.rglob("*.py")
        for name in re.findall(r"\b(?:version\(|package_name=)\"([\w-]+)\"", path.read_text())
    }
    assert asked == {SERVER["name"]}


def test_the_library_brings_no_command() -> None:
    assert "scripts" not in CLIENT
