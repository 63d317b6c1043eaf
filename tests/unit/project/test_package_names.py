"""No page or message installs a package of somebody else under one of our names."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# By its name, with an extra or without; `dist/hq/*.whl` is a path.
INSTALLS_OWN = re.compile(
    r"\b(?:pip3?|pipx|uv pip) install\b[^`#]*?[\s'\"]hq(?:-client|-registry)?(?![\w/.-])|\bhq(?:-registry)?\[otel\]"
)


def texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no clone")
    names = [name for name in listed.stdout.split("\0") if name and name != "CHANGELOG.md"]
    endings = (".md", ".py", ".in", ".toml", ".env", ".service", ".yaml", ".yml", "file", "run")
    return [path for path in map(ROOT.joinpath, names) if path.name.endswith(endings) and path != Path(__file__)]


def test_no_page_and_no_message_installs_a_strangers_package_by_our_name() -> None:
    strangers = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts()
        for line in path.read_text().splitlines()
        if INSTALLS_OWN.search(line)
    ]
    assert strangers == []


def test_messages_about_tracing_name_the_packages_of_the_otel_extra() -> None:
    wanted = [Requirement(each).name for each in PROJECT["optional-dependencies"]["otel"]]
    assert f'pip install {" ".join(wanted)}"' in (ROOT / "serving/flags.py").read_text()
