"""Every page can be found from the index, and links between pages lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])


def text_of(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the heading, or "", of each link to a file."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if not re.match(r"[a-z]+:", target):
            name, _, heading = target.partition("#")
            yield (page.parent / name).resolve() if name else page, heading


@cache
def headings(page: Path) -> set[str]:
    """The anchors that GitHub and GitLab make of a page's headings."""
    found = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def test_each_link_leads_to_a_file_and_to_a_heading_of_it() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{heading}"
        for page in PAGES
        for target, heading in links(page)
        if not target.exists() or (heading and heading not in headings(target))
    ]
    assert broken == []


def test_the_index_lists_every_page() -> None:
    index = DOCS / "index.md"
    listed = {target for target, _ in links(index)}
    assert {*DOCS.glob("*.md")} - listed - {index} == set()
    assert DOCS / "decisions" / "README.md" in listed


def test_pages_that_are_named_without_a_link_exist() -> None:
    """Names like `docs/x.md`, in pages and in messages."""
    sources = [*PAGES, *(path for package in ("clients", "hq", "serving") for path in (ROOT / package).rglob("*.py"))]
    missing = {
        f"{source.relative_to(ROOT)}: {name}"
        for source in sources
        if source.name != "CHANGELOG.md"
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", source.read_text())
        if not (ROOT / name).exists()
    }
    assert missing == set()
