"""Whoever follows the pages for contributors finds each name where the page says that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
_STEP: Final = re.compile(r"^ *\d+\. .*(?:\n(?! *\d+\. |\n|#).*)*", re.MULTILINE)


def _steps(page: str) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    return (step[0] for step in _STEP.finditer(text))


def _files(step: str) -> list[Path]:
    """Python files that a step names; one without a folder lies beside the one before it."""
    files: list[Path] = []
    for name in re.findall(r"`([\w/]+\.py)`", step):
        at = ROOT / name if "/" in name or not files else files[-1].parent / name
        files += [at] if at.exists() else []
    return files


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_a_step_names_what_is_in_its_files(page: str) -> None:
    missing = []
    for step in _steps(page):
        texts = [file.read_text() for file in _files(step)]
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", step) if texts else ():
            word = name.rpartition(".")[2]
            if word not in ("py", "proto", "md", "yml", "yaml", "toml") and not any(word in text for text in texts):
                missing.append(f"{name} ({step.strip()[:60]}...)")
    assert missing == []
