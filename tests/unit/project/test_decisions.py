"""The index of design decisions has a row for each page, with its title and whether it holds."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
ROWS = re.findall(
    r"^\| \[(\d{3})\]\(([^)]+)\) \| (.+) \| ([^|]+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
)


def test_the_index_lists_each_page_once_with_its_title_in_order() -> None:
    listed = [(name, f"# {number} · {title}") for number, name, title, _ in ROWS]
    assert listed == [(page.name, page.read_text().partition("\n")[0]) for page in PAGES]


def test_no_two_pages_have_one_number() -> None:
    numbers = [page.name[:4] for page in PAGES]
    assert numbers == sorted(set(numbers))
    assert all(re.fullmatch(r"\d{3}-", number) for number in numbers)


def test_a_status_is_one_of_three_and_names_a_page() -> None:
    numbers = {row[0] for row in ROWS}
    for number, _, _, status in ROWS:
        replaced = re.fullmatch(r"replaced by (\d{3})", status)
        assert replaced or status in ("holds", "withdrawn"), number
        assert replaced is None or number < replaced[1] in numbers, number
