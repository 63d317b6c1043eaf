"""The file that says where hosts stand and how many domains may be under work at once."""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from pathlib import Path

import pytest

from cms import server
from cms.sites import BadSites, parse_sites
from tests.cms.cloud import Cms, service_of
from tests.support.sample_instances import eventually

HOSTS = "hosts:\n  h0: {rack: r0}\n  h1: {rack: r0}\n  h2: {rack: r1}\n"


def racks(most: int) -> str:
    return HOSTS + f"limits:\n  racks: {{kind: rack, most: {most}}}\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("hosts: [h0]", "hosts"),
        ("hosts: {h0: {row: 1}}", "hosts.h0.row"),
        ("hosts: {h0: {rack: [1]}}", "hosts.h0.rack"),
        ("limits: {one: {kind: room, most: 1}}", "limits.one.kind"),
        ("limits: {one: {kind: rack, most: 0}}", "limits.one.most"),
        ("limits: {one: {kind: rack, most: 1, within: {floor: 1}}}", "limits.one.within.floor"),
        ("racks: {}", "the file.racks"),
        ("{", "not valid YAML"),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, where: str) -> None:
    with pytest.raises(BadSites, match=where):
        parse_sites(text)


async def is_faulty(cms: Cms) -> bool:
    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{cms.port}/metrics") as answer:
            text: str = answer.read().decode()
            return text

    return "\ncms_sites_fault 1" in await asyncio.to_thread(page)


async def test_a_changed_file_is_in_force_at_once_and_one_that_cannot_be_used_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_REREAD_S", 0.05)
    path = tmp_path / "sites.yaml"
    path.write_text(racks(1))
    async with service_of(30, sites_path=path) as (_, cms):
        assert (await cms.ask("t0", "h0")).body["status"] == "ok"
        assert "limit racks" in (await cms.ask("t2", "h2")).body["message"]
        with caplog.at_level(logging.ERROR):
            path.write_text("limits: {racks: {kind: rack, most: none}}")
            await eventually(lambda: "limits.racks.most" in caplog.text, 10.0, "the fault to be in the log")
        assert await is_faulty(cms)
        assert await cms.status("t2") == "in-process"
        path.write_text(racks(2))
        await cms.becomes("t2", "ok")
        assert not await is_faulty(cms)
