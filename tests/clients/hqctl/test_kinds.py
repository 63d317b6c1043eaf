"""`hqctl get KIND`: what controllers hold, by the same table of kinds as the other lists."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner

from cmspb.v1 import cms_pb2 as pb
from hqctl.commands.getting import get as get_command
from hqctl.main import cli
from hqkinds.cms import BUDGET, TASK, WINDOWS
from hqkinds.names import WORDS, kind_named
from tests.clients.hqctl.conftest import clean_environment
from tests.console.fake_cms import FakeCms
from tests.console.fake_walle import FakeWalle
from tests.console.fakes import serving
from tests.console.scene import HOSTILE
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as wpb


async def get(*words: str) -> tuple[int, str]:
    """The exit code and all that was printed, of a CMS and a Wall-E with something in them."""
    walle = FakeWalle()
    walle.project = wpb.GetProjectResponse(project=ppb.Project(id="search", owners=["ann", "bob"]), hosts=24)
    walle.project.fuse.healing.off = True
    async with serving(FakeCms().methods()) as cms, serving(walle.methods()) as hosts:
        where = clean_environment() | {"HQ_CMS": cms, "HQ_WALLE": hosts}
        result = await asyncio.to_thread(CliRunner().invoke, cli, ["get", *words], env=where)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (
            "budgets",
            [
                "NAME          RULE                      TOTAL  FLOOR  AVAILABLE  MARGIN  HELD    NOT-READY",
                "default:cart  at most 10% unavailable  4      3      1          -2      -       0",
                "web-floor     at least 3               4      3      3          0       rack-7  0",
            ],
        ),
        ("budget web-floor --no-headers", ["web-floor at least 3 4 3 3 0 rack-7 0"]),
        ("tasks -o name", ["rack-7", "reboot-1", "reboot-2"]),
        ("windows --no-headers", [f"nights project search mon-fri 22:00-06:00 UTC - closed {HOSTILE}"]),
        ("projects", ["PROJECT  HOSTS  HEALING  DNS", "search 24 off on"]),
        ("project search -o wide", ["PROJECT HOSTS HEALING DNS OWNERS CMS", "search 24 off on ann,bob -"]),
    ],
)
async def test_a_kind_is_listed_in_its_columns(words: str, rows: list[str]) -> None:
    code, told = await get(*words.split())
    assert (code, [line.split() for line in told.splitlines()]) == (0, [row.split() for row in rows])


async def test_one_of_a_kind_is_one_object_and_several_are_a_list() -> None:
    assert json.loads((await get("project", "search", "-o", "json"))[1])["project"]["owners"] == ["ann", "bob"]
    told = json.loads((await get("disruptions", "-o", "json"))[1])
    assert (told["kind"], [one["task"]["id"] for one in told["items"]]) == ("List", ["rack-7", "reboot-1", "reboot-2"])


async def test_what_is_not_there_is_named_and_the_rest_is_shown() -> None:
    code, told = await get("budgets", "web-floor", "nonsense", "-o", "name")
    assert (code, "there is no budget nonsense: `hqctl get budgets` lists them" in told) == (3, True)
    assert "web-floor" in told


async def test_a_kind_that_does_not_come_first_is_refused_with_the_right_order() -> None:
    code, told = await get("-o", "json", "budgets")
    assert (code, "write the kind first: hqctl get budgets" in told) == (2, True)


def test_an_instance_may_have_the_name_of_a_kind() -> None:
    assert get_command.make_context("get", ["instance", "budgets"]).params["ids"] == ("budgets",)


def test_each_known_word_names_a_kind_and_any_other_word_none() -> None:
    for word in WORDS:
        kind = kind_named(word)
        assert kind is not None
        assert word in (kind.name, kind.plural, "window", "disruptions")
        assert kind.method == f"List{kind.plural.title()}"
    assert kind_named("web-1") is None


def test_an_idle_budget_and_windows_without_hours_have_rows() -> None:
    idle = pb.ListBudgetsResponse(budget=[pb.Budget(name="idle", max_unavailable="10%")])
    assert BUDGET.rows(BUDGET.items(idle)) == [["idle", "max_unavailable 10%", "0", "0", "0", "0", "-", "0"]]
    idle.budget[0].brief.max_unavailable, idle.budget[0].brief.within = "30%", "15m"
    assert BUDGET.rows(BUDGET.items(idle))[0][1] == "max_unavailable 10%, brief 30% within 15m"
    closed = pb.WindowsState(windows=pb.Windows(name="freeze", project="web"), message="closed")
    assert WINDOWS.rows([closed]) == [["freeze", "project web", "always", "UTC", "-", "closed"]]
    task = pb.TaskState(task=pb.Task(id="t", host=["a", "b", "c", "d"]), status=pb.TASK_STATUS_OK, is_overdue=True)
    assert TASK.rows([task])[0][:2] == ["t", "ok (overdue)"]
    assert "a,b,c+1" in TASK.rows([task])[0]
