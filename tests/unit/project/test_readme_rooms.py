"""The drawing of hq/ in the README is the order that import-linter enforces."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_rooms_are_drawn_in_the_order_of_their_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == ["hq"]]
    drawing = re.search(
        r"each importing only those below it:\n\n```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert drawing is not None
    drawn = drawing[1].splitlines()
    assert len(drawn) == len(layers)
    for line, layer in zip(drawn, layers, strict=True):
        names = [name.strip() for name in re.split(r"[:|]", layer)]
        assert line.split()[: len(names)] == names
