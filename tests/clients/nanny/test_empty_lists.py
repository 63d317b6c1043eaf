"""What `nanny` and `walle` print of lists with nothing in them: what to do next, not a header alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from nannyctl.main import cli
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from wallectl.output import table

ANSWERS = {"ListServices": pb.ListServicesResponse, "ListSnapshots": pb.ListSnapshotsResponse}
LISTS = [
    (("service", "list"), "service", "There are no services yet: create one with `nanny service create NAME`."),
    (
        ("snapshot", "list", "web"),
        "snapshot",
        "web has no snapshots yet: add one with `nanny snapshot add web -f FILE`.",
    ),
]


@pytest.fixture(autouse=True)
def _new_nanny(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(_: NannyServer, method: str, request: Any) -> Any:
        return ANSWERS[method]()

    monkeypatch.setattr(NannyServer, "call", call)


@pytest.mark.parametrize(("words", "field", "text"), LISTS)
def test_an_empty_list_says_what_to_do(words: tuple[str, ...], field: str, text: str) -> None:
    shown = CliRunner().invoke(cli, words)
    assert (shown.exit_code, shown.stdout, shown.stderr.strip()) == (0, "", text)


@pytest.mark.parametrize(("words", "field", "text"), LISTS)
def test_in_json_an_empty_list_is_an_empty_array(words: tuple[str, ...], field: str, text: str) -> None:
    shown = CliRunner().invoke(cli, [*words, "-o", "json"])
    assert json.loads(shown.stdout) == {field: []}


def test_walle_prints_one_sentence_in_place_of_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    table([], ("HOST",), "There are no hosts yet.")
    assert capsys.readouterr() == ("", "There are no hosts yet.\n")
