"""Lists of cms.v1 in pages, as a client takes them that knows nothing of their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cms.cloud import service_of

NAMES = [f"n{number}" for number in range(5)]
LISTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "ListTasks": ("state", lambda one: str(one["task"]["id"])),
    "ListBudgets": ("budget", lambda one: str(one["name"])),
    "ListWindows": ("state", lambda one: str(one["windows"]["name"])),
}


async def test_every_list_has_bounded_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    async with service_of(1) as (_, cms):
        for name in reversed(NAMES):
            await cms.ask(f"t{name}", f"h-{name}")
            budget = {"name": name, "service": name, "maxUnavailable": "1"}
            assert (await cms.call_connect("PutBudget", {"budget": budget})).status == 200
            windows = {"name": name, "service": name, "hours": [{"begin": "00:00", "end": "12:00"}]}
            assert (await cms.call_connect("PutWindows", {"windows": windows})).status == 200
        monkeypatch.setattr("control.paging.MAX_PAGE", 2)
        for method, (field, name_of) in LISTS.items():
            pages, token = list[list[str]](), ""
            while token or not pages:
                answer = (await cms.call_connect(method, {"pageToken": token})).body
                pages.append([name_of(one) for one in answer.get(field, [])])
                token = answer.get("nextPageToken", "")
            names = [f"t{name}" for name in reversed(NAMES)] if method == "ListTasks" else NAMES
            assert [name for page in pages for name in page] == names, method
            assert max(map(len, pages)) == 2, method
            assert (await cms.call_connect(method, {"pageSize": 3})).status == 400, method
