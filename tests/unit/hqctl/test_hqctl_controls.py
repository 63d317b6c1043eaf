"""Text from agents, programs and other people reaches a terminal without control characters."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest
import yaml
from click.testing import CliRunner

from cmspb.v1 import cms_pb2 as cms_pb
from hqcli.complaints import complainer, complaints_as_asked
from hqcli.formats import print_json, print_json_line, print_jsonpath, yaml_text
from hqcli.terminal import escape_controls, lines, warn
from hqctl.commands import disruptions
from hqctl.commands.explaining import _print
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.instance_pb2 import REVISION_TARGET_READY as READY
from nannyctl.commands.orders import _run_control_order
from nannyctl.commands.rollout_show import _print_rollout
from nannyctl.commands.services import _answer
from nannyctl.output.plans import PlanLine, print_lines
from nannyctl.output.services import LiveServiceView, service_words, show_instances, table
from nannypb.v1 import service_pb2 as nanny_pb
from wallectl.commands.hosts_import import _print_changes
from wallepb.v1 import service_pb2 as walle_pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

EVIL = "\x1b]52;c;cm0=\x07\x9b2J\u202edaer"
BY = nanny_pb.Authorship()
CONTROLS = {*"\x1b\x07\x9b\u202e"}
SPELLED = "\\x1b]52;c;cm0=\\x07\\x9b2J\\u202edaer"


def explanation() -> pb.ExplainInstanceResponse:
    made = pb.ExplainInstanceResponse()
    made.meta.id = "web-1"
    one = made.revision.add(id="r1", target=READY, last_heartbeat_time={"seconds": 1})
    one.ready.message = EVIL
    container = one.container.add(name="main", isolation=EVIL)
    container.last_termination.message = container.last_termination.output = EVIL
    return made


def filled(message: Any, depth: int = 5) -> Any:
    """The message with EVIL in every text field."""
    for field in message.DESCRIPTOR.fields:
        at = getattr(message, field.name)
        if field.message_type is None:
            if field.type == field.TYPE_STRING:
                at.append(EVIL) if field.is_repeated else setattr(message, field.name, EVIL)
        elif field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if value.message_type is None:
                at["one"] = EVIL if value.type == value.TYPE_STRING else 1
        elif depth:
            filled(at.add() if field.is_repeated else at, depth - 1)
            if not field.is_repeated:
                at.SetInParent()
    return message


def nanny(answer: Any) -> Any:
    """A server that returns `answer`, filled with EVIL."""
    return SimpleNamespace(call=AsyncMock(return_value=filled(answer)))


@pytest.mark.parametrize(
    "say",
    [
        lambda: _print(explanation(), ()),
        lambda: warn(EVIL),
        lambda: complainer("hqctl")(EVIL),
        lambda: print(*lines(("BY", "WHY"), ((EVIL, EVIL),))),
        lambda: print(table(("BY",), ((EVIL,),))),
        lambda: print(service_words(nanny_pb.Service(id="web", stuck=EVIL))),
        lambda: print_lines([PlanLine("~", EVIL)]),
        lambda: LiveServiceView(stream=sys.stdout).show(filled(nanny_pb.Service())),
        lambda: asyncio.run(_print_rollout(nanny(nanny_pb.GetRolloutResponse()), nanny_pb.GetRolloutRequest(), "")),
        lambda: asyncio.run(_answer(nanny(nanny_pb.ListInstancesResponse()), "", None, "table", show_instances)),
        lambda: asyncio.run(_run_control_order(nanny(nanny_pb.GetControlResponse()), "show", BY, "")),
        lambda: disruptions._tell(filled(cms_pb.TaskState())),
        lambda: _print_changes([filled(walle_pb.MachineChange())], Counter()),
    ],
)
def test_texts_of_others_do_not_control_the_terminal(
    say: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    say()
    said = "".join(capsys.readouterr())
    assert SPELLED in said
    assert not CONTROLS.intersection(said)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("hosts get h", walle_pb.GetHostResponse),
        ("scenarios get s", walle_pb.GetScenarioResponse),
        ("incidents", walle_pb.ListIncidentsResponse),
        ("limits show", walle_pb.GetLimitsResponse),
        ("automation forecast p", walle_pb.GetForecastResponse),
        ("projects get p", walle_pb.GetProjectResponse),
        ("settings get", walle_pb.GetSettingsResponse),
    ],
)
def test_texts_from_wall_e_do_not_control_the_terminal(
    command: str, answer: type[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *arguments = command.split()
    module = importlib.import_module(f"wallectl.commands.{name}")
    for way in ("call", "call_pages"):
        monkeypatch.setattr(module, way, lambda *_: filled(answer()), raising=False)
    said = CliRunner().invoke(getattr(module, name), arguments, catch_exceptions=False)
    assert SPELLED in said.output
    assert not CONTROLS.intersection(said.output)


def test_formats_for_programs_control_no_terminal_and_mean_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for show in (print_json, print_json_line):
        show({"said": EVIL})
        out = capsys.readouterr().out
        assert not CONTROLS & set(out)
        assert json.loads(out) == {"said": EVIL}
    print_jsonpath({"said": EVIL}, "jsonpath={.said}")
    assert capsys.readouterr().out == f"{EVIL}\n", "to a program"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_jsonpath({"said": EVIL}, "jsonpath={.said}\t{.said}")
    assert capsys.readouterr().out == f"{SPELLED}\t{SPELLED}\n"


@pytest.mark.parametrize("control", "\x00\x1b\t\r\x7f\x85\x9b\u200e\u200f\u2028\u202e\u2069")
def test_yaml_controls_no_terminal_and_means_the_same(control: str) -> None:
    said = f"a {control} {'long ' * 30}\n{control}\\{control}z"
    data = {said: [said, {"said": control, "plain": "two\nlines, ü, …"}]}
    text = yaml_text(data)
    assert control not in text
    assert "ü, …" in text
    assert yaml.safe_load(text) == data


def test_a_complaint_as_json_controls_no_terminal_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with complaints_as_asked(("get", "-o", "json")):
        complainer("hqctl")(EVIL)
    said = capsys.readouterr().err
    assert not CONTROLS & set(said)
    assert json.loads(said)["error"]["message"] == EVIL


def test_ordinary_text_is_not_escaped() -> None:
    assert escape_controls("two\nlines, ü, 漢, …, 🙂") == "two\nlines, ü, 漢, …, 🙂"
