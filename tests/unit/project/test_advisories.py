"""The check of locked versions against known vulnerabilities can fail."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tools.check_advisories import holes, is_good, locked, main

ADVISORIES = [{"id": "CVE-1", "package": "Some_Package", "fixed": ["5.29.6", "6.33.5"], "about": "a hole"}]


@pytest.mark.parametrize(
    ("version", "good"),
    [("5.29.5", False), ("5.29.6", True), ("6.31.1", False), ("6.33.4", False), ("6.33.5", True), ("7.36.2", True)],
)
def test_a_version_is_judged_by_the_repair_in_its_own_line_of_releases(version: str, good: bool) -> None:
    assert is_good(Version(version), [Version("5.29.6"), Version("6.33.5")]) is good


def test_a_vulnerable_locked_version_is_reported_with_those_to_take() -> None:
    lock = "some-package==6.33.4 ; python_version >= '3' \\\n    --hash=sha256:00\nother==1.0\n"
    [line] = holes(ADVISORIES, locked(lock), "run.txt")
    assert line == "run.txt: Some_Package 6.33.4 has CVE-1 (a hole): take 5.29.6, 6.33.5 or newer"


def test_no_locked_version_has_a_known_vulnerability() -> None:
    assert main() == 0
