"""The drawing of hq/ in docs/architecture.md is the order that import-linter enforces."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_rooms_are_drawn_in_the_order_of_their_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == ["hq"]]
    drawing = re.search(r"each importing only those below it:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert drawing is not None
    drawn = drawing[1].splitlines()
    assert len(drawn) == len(layers)
    for line, layer in zip(drawn, layers, strict=True):
        names = [name.strip() for name in re.split(r"[:|]", layer)]
        assert line.split()[: len(names)] == names


def test_the_walks_name_files_and_functions_that_there_are() -> None:
    steps = re.findall(r"^\d\. (.*(?:\n   .*)*)", PAGE, re.MULTILINE)
    assert len(steps) > 20
    for step in steps:
        words = re.findall(r"`([\w./]+)`", step)
        first = ROOT / words[0]
        files = [ROOT / word if "/" in word else first.parent / word for word in words if re.search(r"/|\.py$", word)]
        assert [file for file in files if not file.exists()] == [], step
        code = "".join(file.read_text() for file in files if file.is_file())
        names = [word.rpartition(".")[2] for word in words if not re.search(r"/|\.py$", word)]
        assert [name for name in names if not re.search(rf"(?:def|class) {name}\b", code)] == [], step
