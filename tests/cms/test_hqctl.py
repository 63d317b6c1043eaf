"""`hqctl budget` and `hqctl disruptions` as commands, against a real CMS."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.cms.cloud import Cms, service_of


async def hqctl(cms: Cms, *words: str, stdin: str = "") -> tuple[int, str]:
    """The exit code and all that was printed."""
    where = ("--cms", f"127.0.0.1:{cms.port}")
    return await run(*words, *where, stdin=stdin)


async def run(*words: str, stdin: str = "", **environ: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hqctl.main", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"} | environ,
    )
    told, _ = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return process.returncode, told.decode()


@pytest.mark.long
async def test_budgets_are_applied_from_yaml_listed_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / "budgets.yaml"
    file.write_text("name: web\nservice: web\nmaxUnavailable: 1\n---\nname: front\nlabels: {tier: a}\nminReady: 50%\n")
    async with service_of(4) as (_, cms):
        code, told = await hqctl(cms, "budget", "apply", "-f", str(file))
        assert (code, "budget web set\nbudget front set\n" in told) == (0, True)
        assert "no instance matches budget front" in told
        assert "budget web:" not in told
        code, told = await hqctl(cms, "budget", "list")
        assert code == 0
        front, web = (line.split() for line in told.splitlines()[1:])
        assert front == ["front", "min_ready", "50%", "0", "0", "0", "0", "-", "0"]
        assert web == ["web", "max_unavailable", "1", "4", "3", "4", "1", "-", "0"]
        code, told = await hqctl(cms, "budget", "list", "-o", "json")
        assert {one["name"] for one in json.loads(told)["budget"]} == {"front", "web"}
        assert (await hqctl(cms, "budget", "delete", "web"))[0] == 0
        assert (await hqctl(cms, "budget", "delete", "web"))[0] == 3


@pytest.mark.long
async def test_a_dry_run_answers_as_the_request_would_and_a_plan_names_unknown_hosts(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    async with service_of(4) as (_, cms):
        ask = ("disruptions", "ask", "--id", "t1", "--reason", "kernel", "--by", "ann")
        assert (await hqctl(cms, *ask, "h0"))[0] == 0
        assert (await hqctl(cms, *ask, "h0", "--dry-run"))[1].startswith("t1: ok: granted")
        assert (await hqctl(cms, *ask, "h1", "--dry-run"))[0] == (await hqctl(cms, *ask, "h1"))[0] == 4
        hosts.write_text("h1\nh-new\n")
        assert "no instance is known on h-new" in (await hqctl(cms, "disruptions", "plan", "-f", str(hosts)))[1]
        hosts.write_text("h1\nh 2\n")
        code, told = await hqctl(cms, "disruptions", "plan", "-f", str(hosts))
        assert (code, "host[1]" in told) == (1, True)
        again = ("disruptions", "unfreeze", "--reason", "over")
        assert "approvals are granted" in (await hqctl(cms, *again))[1]


async def test_a_bad_budget_is_refused_by_its_field() -> None:
    async with service_of(1) as (_, cms):
        code, told = await hqctl(cms, "budget", "put", "web", "--service", "web", "--min-ready", "many")
        assert code != 0
        assert "min_ready" in told


@pytest.mark.long
async def test_why_names_the_floor_and_the_holder_and_an_operator_can_extend_or_end_a_task(tmp_path: Path) -> None:
    async with service_of(10) as (_, cms):
        reason = ("--reason", "kernel", "--by", "ann")
        assert (await hqctl(cms, "disruptions", "ask", "h0", "--id", "t1", *reason))[0] == 0
        code, told = await hqctl(cms, "disruptions", "ask", "h1", "--id", "t2", *reason)
        assert (code, "hqctl disruptions why t2; to check again, repeat this command with --id t2" in told) == (8, True)
        code, told = await hqctl(cms, "disruptions", "why", "t2")
        assert code == 0
        for words in ("floor 9 of 10", "held by t1", "ask again in"):
            assert words in told
        code, told = await hqctl(cms, "disruptions")
        assert [line.split()[:2] for line in told.splitlines()[1:]] == [["t1", "ok"], ["t2", "in-process"]]
        assert len((await hqctl(cms, "disruptions", "--node", "h1"))[1].splitlines()) == 2
        assert (await hqctl(cms, "disruptions", "extend", "t1", "--for", "2h", *reason))[0] == 0
        assert (await hqctl(cms, "disruptions", "end", "t1", *reason))[0] == 0
        await cms.becomes_granted("t2")
        hosts = tmp_path / "hosts.txt"
        hosts.write_text("# two of them\nh5\nh6\n")
        code, told = await hqctl(cms, "disruptions", "plan", "-f", str(hosts))
        assert code in (0, 1)
        assert (await hqctl(cms, "disruptions", "done", "t2"))[0] == 0


@pytest.mark.long
async def test_a_freeze_shows_in_the_status() -> None:
    async with service_of(1) as (_, cms):
        assert (await hqctl(cms, "disruptions", "status"))[0] == 0
        assert (await hqctl(cms, "disruptions", "freeze", "--reason", "drill"))[0] == 0
        code, told = await hqctl(cms, "disruptions", "status")
        assert (code, "drill" in told) == (1, True)
        assert (await hqctl(cms, "disruptions", "unfreeze", "--reason", "over"))[0] == 0


async def test_a_cms_that_is_away_is_told_in_one_line_with_the_flag_that_names_another() -> None:
    code, told = await run("budget", "list", "--cms", "127.0.0.1:9")
    why = "nothing listens there: start it, or check the port"
    away = f"hqctl: the CMS at 127.0.0.1:9 cannot be reached ({why}): name another with --cms or HQ_CMS\n"
    assert (code, told) == (5, away)


@pytest.mark.long
async def test_the_address_of_the_cms_may_stand_anywhere_in_a_command_or_in_a_context(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    async with service_of(1) as (_, cms):
        where = f"127.0.0.1:{cms.port}"
        config.write_text(f"contexts:\n  a: {{servers: x, cms: '{where}'}}\n  b: {{servers: x, walle: y}}\n")
        for words in (
            ("disruptions", "--cms", where, "status"),
            ("disruptions", "status", "--cms", where, "--timeout", "5s"),
            ("--timeout", "5s", "--context", "a", "disruptions", "status"),
            ("disruptions", "--context", "a", "status"),
            ("disruptions", "status", "--context", "a"),
            ("--context", "b", "budget", "list", "--cms", where),
            ("-v", "budget", "--context", "a", "list"),
        ):
            code, told = await run(*words, HQ_CONFIG=str(config), HQ_CMS="127.0.0.1:9")
            assert (code, "ListBudgets at" in told) == (0, words[0] == "-v"), told


async def test_an_option_about_hq_is_refused_rather_than_ignored(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("contexts:\n  b: {servers: x}\n")
    code, told = await run("--server", "hq:7071", "disruptions", "status")
    assert (code, "name the CMS with --cms" in told) == (2, True)
    code, told = await run("--context", "b", "disruptions", "status", HQ_CONFIG=str(config))
    assert (code, "context b names no servers of the CMS: add `cms: [HOST:PORT]`" in told) == (2, True)
