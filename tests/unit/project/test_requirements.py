"""The versions that the wheel requires work with the generated code and include the locked ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools.check_advisories import locked

ROOT = Path(__file__).parents[3]
WANTED = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements/run.in").read_text().splitlines()
    if not line.startswith("#")
]
LOCKED = {name.lower(): version for name, version in locked((ROOT / "requirements/run.txt").read_text()).items()}


def generated_with(pattern: str, text: str) -> Version:
    return max(Version(found) for path in (ROOT / "proto/hqpb").rglob(text) for found in _found(pattern, path))


def _found(pattern: str, path: Path) -> list[str]:
    return re.findall(pattern, path.read_text())


@pytest.mark.parametrize("wanted", WANTED, ids=lambda wanted: wanted.name)
def test_each_locked_version_is_within_the_bounds_of_the_wheel(wanted: Requirement) -> None:
    operators = {bound.operator for bound in wanted.specifier}
    assert ">=" in operators
    assert wanted.specifier.contains(str(LOCKED[wanted.name.lower()]))


def test_no_protobuf_older_than_the_generator_of_our_code_is_accepted() -> None:
    [bounds] = [wanted.specifier for wanted in WANTED if wanted.name == "protobuf"]
    generator = generated_with(r"# Protobuf Python Version: (\S+)", "*_pb2.py")
    assert bounds.contains(str(generator))
    assert not bounds.contains(f"{generator.major}.{generator.minor - 1}.99")
    assert not bounds.contains(f"{generator.major + 1}.0.0")
