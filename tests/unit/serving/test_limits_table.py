"""docs/security.md has every limit with its default and flag."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import pytest

from hq.process import options
from serving.flags import Bytes, Duration, Flags
from serving.limiting.limits import Limits

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "security.md").read_text()
_ROW = re.compile(r"^\| (\w+) \| ([^|]+) \| `(--[^`]+)` \|", re.MULTILINE)
ROWS = {name: (default, flag) for name, default, flag in _ROW.findall(PAGE)}
FIELDS = {field.name: field for field in dataclasses.fields(Limits)}


def test_the_rows_of_the_table_are_the_limits_in_order() -> None:
    assert list(ROWS) == list(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_the_row_says_the_default_and_the_flag(name: str) -> None:
    @Flags("HQ_").limits(agents=True)
    @click.command()
    def command() -> None: ...

    default, flag = ROWS[name]
    [option] = [p for p in command.params if p.name == name]
    assert option.opts == [flag]
    said = default.partition(" (")[0].replace(",", "").replace(" ", "")
    kind = Duration() if isinstance(option.type, Duration) else Bytes() if "iB" in said else click.FLOAT
    assert kind.convert(said, None, None) == FIELDS[name].default


@pytest.mark.parametrize(
    "flag", ["--page-bytes", "--watch-buffer", "--history-bytes", "--json-bytes", "--max-store-bytes"]
)
def test_the_limits_of_a_replica_are_as_the_page_says(flag: str) -> None:
    @options.limits
    @click.command()
    def command() -> None: ...

    [option] = [p for p in command.params if flag in p.opts]
    [said] = re.findall(rf"\| ([\d]+ MiB) \| `{flag}` \|", PAGE)
    assert Bytes().convert(said.replace(" ", ""), None, None) == Bytes().convert(option.default, None, None)
