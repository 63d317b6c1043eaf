"""A release is complete, is the same each time, and what it contains runs."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tools.check_advisories import locked
from tools.check_packages import environment
from tools.packages import ROOT
from tools.release import changes

CHANGELOG = """# Changelog

## 0.3.0, unreleased

- new

## 0.2.0, 2026-12-01

### Fixed

- old

## 0.1.0

- first
"""


def test_the_section_of_a_version_ends_where_the_next_one_begins() -> None:
    assert changes(CHANGELOG, "0.2.0") == "## 0.2.0, 2026-12-01\n\n### Fixed\n\n- old\n"
    assert changes(CHANGELOG, "0.1.0") == "## 0.1.0\n\n- first\n"
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md has no section `## 0\.4\.0`"):
        changes(CHANGELOG, "0.4.0")


def make_release(target: Path) -> str:
    done = subprocess.run(
        ["make", "-s", "release", f"OUT={target}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is made of a commit, and this is no clone")
def test_a_release_is_the_same_twice_and_its_wheels_install_and_run(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert "release: " in make_release(first)
    version = subprocess.run(
        ["git", "show", "HEAD:VERSION"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    server, client = (f"{name}-{version}" for name in ("hq_registry", "hq_client"))
    wheels = [f"{name}-py3-none-any.whl" for name in (client, server)]
    others = [f"{client}.tar.gz", f"{server}.tar.gz", f"hq-registry-{version}.cdx.json", "CHANGES.md", "SHA256SUMS"]
    assert sorted(path.name for path in first.iterdir()) == sorted([*wheels, *others])
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=first, check=True)

    make_release(second)
    for name in [*wheels, *others]:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name

    bill = json.loads((first / f"hq-registry-{version}.cdx.json").read_text())
    assert bill["metadata"]["component"]["name"] == "hq-registry"
    assert bill["metadata"]["component"]["version"] == version
    parts = {(part["name"].lower(), part["version"]) for part in bill["components"]}
    assert parts == {(name, str(each)) for name, each in locked((ROOT / "requirements/run.txt").read_text()).items()}

    scripts, packages = environment(tmp_path / "installed", *(first / name for name in wheels))
    (packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    said = subprocess.run([scripts / "hq", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.split()[-1] == version
    assert list(packages.glob("hq_registry-*/licenses/LICENSE"))
