"""Pages with ```console blocks: what is typed there and what is printed."""

from __future__ import annotations

import re
from pathlib import Path


def commands(page: Path) -> list[tuple[str, str]]:
    """Each command of the page with what it prints there."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    pairs = (part.partition("\n") for part in re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:])
    return [(command, printed) for command, _, printed in pairs]


def normal(text: str) -> list[str]:
    """Lines without widths of columns, versions and numbers of processes."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [re.sub(r"\b(running|version) \d+", r"\1 N", line) for line in lines]
