"""The two distributions: what a team imports, and everything else."""

import re
import sysconfig
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
CLIENT = tomllib.loads((ROOT / "distributions" / "hq-client" / "pyproject.toml").read_text())["project"]
_ROOT_FILE = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = (ROOT / "VERSION").read_text().strip()
# Not the folder *.egg-info of an earlier build, which the root of the tree may hold.
[INSTALLED] = Distribution.discover(name="hq-registry", path=[sysconfig.get_path("purelib")])
SERVER, TOOL = _ROOT_FILE["project"], _ROOT_FILE["tool"]


def listed(name: str) -> list[str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def test_the_library_requires_only_ranges_that_are_locked_and_tested() -> None:
    assert set(CLIENT["dependencies"]) <= set(listed("run.in"))


def test_servers_require_the_library_of_their_own_version_and_the_locked_packages() -> None:
    wanted = [line for line in INSTALLED.requires or () if "extra ==" not in line]
    assert f"{CLIENT['name']}=={VERSION}" in wanted
    assert {Requirement(line) for line in wanted} == {
        *map(Requirement, listed("run.in")),
        Requirement(f"{CLIENT['name']}=={VERSION}"),
    }


def test_the_version_is_written_in_one_place_and_the_changelog_begins_with_it() -> None:
    for project in (CLIENT, SERVER):
        assert "version" not in project
        assert "version" in project["dynamic"]
    assert INSTALLED.version == VERSION
    heading = re.search(r"^## (\S+?)(,|$)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    assert heading[1] == VERSION


def test_both_distributions_have_the_licence_of_the_repository() -> None:
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()
    for project in (CLIENT, SERVER):
        assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])


def test_versions_are_read_from_our_distributions_by_name() -> None:
    """The package `hq` on PyPI is not ours: its version would be shown as ours."""
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
