"""hqctl at a gateway that misses one of its two locations."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.hqctl.conftest import Done, Hqctl, documents


@pytest.fixture
def at_gateway(run: Callable[..., Done], gateway: str) -> Hqctl:
    def call(*arguments: str, stdin: str = "") -> Done:
        return run("--server", gateway, *arguments, stdin=stdin)

    return call


@pytest.fixture(autouse=True)
def one(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))


def test_each_line_has_its_cluster_and_a_warning_names_the_missing_location(at_gateway: Hqctl, service: str) -> None:
    done = at_gateway("find", service)
    assert done.code == 0
    assert done.lines[0][:2] == ["CLUSTER", "INSTANCE"]
    assert done.lines[1][:2] == ["east", f"{service}-1"]
    assert "warning: west did not respond" in done.err
    assert "its instances are missing here" in done.err


def test_status_shows_the_locations_and_which_is_missing(at_gateway: Hqctl) -> None:
    done = at_gateway("status")
    assert done.code == 1
    assert re.match("east, west: [1-9] PROBLEM", done.out)
    assert "! west did not respond to the gateway" in done.out
    answers = {line[2]: line[3] for line in done.lines if len(line) == 6}
    assert (answers["east"], answers["west"]) == ("ok", "silent")
    assert "belong to each location" in done.out


def test_with_the_flag_cluster_only_that_location_is_asked(at_gateway: Hqctl, service: str) -> None:
    done = at_gateway("get", f"{service}-1", "--cluster", "east", "-o", "jsonpath=.meta.cluster")
    assert (done.code, done.out) == (0, "east\n")
    assert at_gateway("find", service, "--cluster", "east").err == ""


def test_why_works_and_events_are_refused_with_the_address_of_a_replica(
    at_gateway: Hqctl, server: str, service: str
) -> None:
    assert at_gateway("why", f"{service}-1", "--cluster", "east").out.startswith(f"{service}-1 has not been reported")
    refused = at_gateway("events")
    assert refused.code != 0
    assert server in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.long
def test_a_wait_is_not_done_while_a_location_is_missing(at_gateway: Hqctl, hqctl: Hqctl, service: str) -> None:
    hqctl("report", f"{service}-1", "r1", "--ready")
    done = at_gateway("wait", "--service", service, "--timeout", "6s")
    assert done.code == 8
    assert "west did not respond" in done.err


def test_lines_of_a_watch_name_the_location_of_their_instance(gateway: str, service: str) -> None:
    command = (sys.executable, "-m", "hqctl.main", "--server", gateway, "watch", service)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [next(process.stdout).split()[1:3] for _ in range(2)]
        process.terminate()
    assert lines == [["is", f"east/{service}-1"], ["synced", "1"]]


def test_a_command_for_one_cluster_gets_no_answer_from_a_replica_of_another(hqctl: Hqctl, service: str) -> None:
    commands = (
        *(("get", f"{service}-1"), ("find", service), ("count", service), ("why", f"{service}-1")),
        *(("revision", "show", f"{service}-1"), ("guard", "status"), ("events",), ("quarantine",), ("suspensions",)),
        ("top",),
        *(("guard", order, "--for", "1s", "--reason", "x") for order in ("force", "release")),
        *(("suspend", "n", "--for", "1s", "--reason", "x"), ("resume", "n")),
        ("report", f"{service}-1", "r1", "--ready"),
    )
    for command in commands:
        for told in (hqctl("--cluster", "west", *command), hqctl(*command, "--cluster", "west")):
            assert (told.code, told.out) == (1, "")
            assert "cluster east" in told.err
            assert "west" in told.err


def test_a_plan_of_nanny_names_the_location_that_is_not_in_it(gateway: str, service: str, tmp_path: Path) -> None:
    file = tmp_path / "described.yaml"
    file.write_text(f"service: {service}\ninstances: [{{id: {service}-1}}]\n")
    command = (sys.executable, "-m", "nannyctl.main", "plan", "--installation", f"all={gateway}")
    done = subprocess.run([*command, "-f", file], capture_output=True, text=True, check=False)
    assert done.stdout == f"all: {service}: 1 as described\n"
    assert "west did not respond: their instances are not in this plan" in done.stderr
