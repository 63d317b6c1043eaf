"""`service create --replace` and `leave-out` change what is named, and leave the rest as it is."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from nannyctl.main import cli
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from tests.nanny.orders import Ordered, refused


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Ordered:
    """The service as the server's handler changes it at each command."""
    ordered = Ordered()

    async def call(_: NannyServer, method: str, request: Any) -> Any:
        if method == "UpdateService":
            ordered.send(updated=request.info, updated_fields=request.update_mask, info_version=request.info_version)
        return pb.UpdateServiceResponse(service=pb.Service(info_version=ordered.record.info_version))

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


def test_an_attribute_is_set_back_to_its_default_by_naming_it(web: Ordered) -> None:
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


def test_single_attributes_are_set_and_an_empty_value_is_the_default(web: Ordered) -> None:
    run("set", "web", "max-unavailable=2", "soak=90s", "location=b,a", "roll-back=true", "description=shop")
    rollout = web.record.info.rollout
    assert (rollout.max_unavailable, rollout.soak_s, list(rollout.location)) == ("2", 90, ["b", "a"])
    assert rollout.roll_back
    run("set", "web", "soak=", "location=", "roll-back=false")
    rollout = web.record.info.rollout
    assert (rollout.max_unavailable, rollout.HasField("soak_s"), list(rollout.location)) == ("2", False, [])
    assert not rollout.roll_back
    assert web.record.info.description == "shop"


def test_attributes_that_were_changed_meanwhile_are_not_overwritten(web: Ordered) -> None:
    seen = web.record.info_version
    run("set", "web", "max-unavailable=2")
    stale = pb.InfoAttributes(rollout=pb.RolloutPolicy(max_unavailable="5"))
    assert "changed meanwhile" in refused(lambda: web.send(updated=stale, info_version=seen))
    assert web.record.info.rollout.max_unavailable == "2"


@pytest.mark.parametrize("word", ["max-unavailable", "frob=1", "soak=often", "roll-back=perhaps"])
def test_what_is_no_attribute_is_refused_with_what_to_write(word: str) -> None:
    ended = CliRunner().invoke(cli, ["service", "set", "web", word])
    assert ended.exit_code == 2
    assert word.partition("=")[0] in ended.stderr
