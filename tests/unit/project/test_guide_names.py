"""Whoever follows a checklist finds each name where it says; `test_readme_rooms.py` is about the walks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
_STEP: Final = re.compile(r"^ *\d+\. .*(?:\n(?! *\d+\. |\n|#).*)*", re.MULTILINE)


def _steps() -> Iterator[str]:
    text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    return (step[0] for step in _STEP.finditer(text))


def _files(step: str) -> list[Path]:
    """Python files that a step names; one without a folder lies beside the one before it."""
    files: list[Path] = []
    for name in re.findall(r"`([\w/]+\.py)`", step):
        at = ROOT / name if "/" in name or not files else files[-1].parent / name
        files += [at] if at.exists() else []
    return files


def test_names_in_a_step_of_a_checklist_are_in_its_files() -> None:
    missing = []
    for step in _steps():
        texts = [file.read_text() for file in _files(step)]
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", step) if texts else ():
            word = name.rpartition(".")[2]
            if word not in ("html", "py", "proto", "md", "yml", "yaml", "toml") and not any(
                word in text for text in texts
            ):
                missing.append(f"{name} ({step.strip()[:60]}...)")
    assert missing == []
