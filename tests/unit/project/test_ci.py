"""Every failure of a check fails CI, and every run ends within the hour."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
LONGEST_S = 900  # what takes longer is for the night


def marked(tree: ast.AST) -> Iterator[list[str]]:
    """The marks that stand together: at a function, at a module, or at one parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield [ast.unparse(each) for each in node.decorator_list if "parametrize" not in ast.unparse(each)]
        elif isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets):
            yield [ast.unparse(node.value)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.param":
            yield [ast.unparse(each.value) for each in node.keywords if each.arg == "marks"]


def has_longer(text: str) -> bool:
    return any(not 0 < int(limit) <= LONGEST_S for limit in re.findall(r"mark\.timeout\((\d+)\)", text))


def test_only_nightly_tests_may_take_more_than_a_quarter_of_an_hour() -> None:
    longer = [
        f"{path.relative_to(ROOT)}: {marks}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if has_longer(text := path.read_text())
        for marks in map(" ".join, marked(ast.parse(text)))
        if "mark.night" not in marks and has_longer(marks)
    ]
    assert longer == []


def test_nothing_is_run_and_ignored_and_no_test_gets_a_second_chance() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    steps = re.findall(r"^(.*(?:make |pytest).*)$", re.sub(r"#.*", "", text), re.MULTILINE)
    assert [word for step in steps for word in re.findall(r"make ([a-z-]+)", step)] == [
        *("check", "etcd", "test", "compile", "judges", "test-long")
    ]
    limit = r"(timeout -s INT -k 60 \d+ )?"
    assert all(re.fullmatch(rf" *run {limit}(make|\.venv/bin/pytest) [^|&;()]*", step) for step in steps), steps
    assert "reruns" not in (ROOT / "requirements" / "dev.in").read_text()
