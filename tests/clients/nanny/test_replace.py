"""`service create --replace` and `leave-out` change what is named, and leave the rest as it is."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from nannyctl.main import cli
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from tests.nanny.orders import Ordered


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Ordered:
    """The service as the server's handler changes it at each command."""
    ordered = Ordered()

    async def call(_: NannyServer, method: str, request: Any) -> Any:
        if method == "UpdateService":
            ordered.send(updated=request.info, updated_fields=request.update_mask)
        return pb.UpdateServiceResponse()

    monkeypatch.setattr(NannyServer, "call", call)
    return ordered


def run(*words: str) -> str:
    ended = CliRunner().invoke(cli, ["service", *words])
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout


def test_attributes_that_are_not_named_stay_as_they_are(web: Ordered) -> None:
    run("create", "web", "--replace", "--max-unavailable", "2", "--roll-back", "--location", "a", "--location", "b")
    run("create", "web", "--replace", "--set-current-on-activation", "--min-ready-time", "0", "--description", "shop")
    run("leave-out", "web", "fra")
    before = pb.InfoAttributes()
    before.CopyFrom(web.record.info)
    assert (before.rollout.max_unavailable, before.rollout.roll_back) == ("2", True)
    assert (list(before.rollout.location), list(before.rollout.leave_out)) == (["a", "b"], ["fra"])
    assert (before.set_snapshot_as_current_upon_activation, before.description) == (True, "shop")
    assert before.rollout.HasField("min_ready_s")

    run("create", "web", "--replace", "--max-failures", "30%")
    before.rollout.max_failures = "30%"
    assert web.record.info == before


def test_an_attribute_is_set_back_by_naming_it(web: Ordered) -> None:
    run("create", "web", "--replace", "--max-unavailable", "2", "--roll-back", "--set-current-on-activation")
    run("leave-out", "web", "fra")
    run("create", "web", "--replace", "--max-unavailable", "", "--stop-and-show", "--keep-current-on-activation")
    run("leave-out", "web")
    assert web.record.info == pb.InfoAttributes(rollout=pb.RolloutPolicy())


def test_replacing_nothing_is_refused_instead_of_replacing_everything(web: Ordered) -> None:
    web.send(updated=pb.InfoAttributes(description="shop"))
    ended = CliRunner().invoke(cli, ["service", "create", "web", "--replace"])
    assert (ended.exit_code, web.record.info.description) == (2, "shop")
    assert "name the attributes" in ended.stderr
