"""hqctl at a front that misses one of its two locations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.hqctl.conftest import Done, Hqctl, documents


@pytest.fixture
def at_front(run: Callable[..., Done], front: str) -> Hqctl:
    def call(*arguments: str, stdin: str = "") -> Done:
        return run("--server", front, *arguments, stdin=stdin)

    return call


@pytest.fixture(autouse=True)
def one(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))


def test_each_line_says_its_cluster_and_who_is_missing_is_warned_of(at_front: Hqctl, service: str) -> None:
    done = at_front("find", service)
    assert done.code == 0
    assert done.lines[0][:2] == ["CLUSTER", "INSTANCE"]
    assert done.lines[1][:2] == ["east", f"{service}-1"]
    assert "warning: west did not answer" in done.err
    assert "its instances are missing here" in done.err


def test_status_shows_the_locations_and_which_is_missing(at_front: Hqctl) -> None:
    done = at_front("status")
    assert done.code == 0
    assert done.out.startswith("east, west: 1 PROBLEM, ")
    assert "! west did not answer the front" in done.out
    answers = {line[2]: line[3] for line in done.lines if len(line) == 6}
    assert (answers["east"], answers["west"]) == ("ok", "silent")
    assert "each location's own" in done.out


def test_the_cluster_that_is_meant_can_be_named(at_front: Hqctl, service: str) -> None:
    done = at_front("get", f"{service}-1", "--cluster", "east", "-o", "jsonpath=.meta.cluster")
    assert (done.code, done.out) == (0, "east\n")
    assert at_front("find", service, "--cluster", "east").err == ""


def test_why_works_and_what_only_a_replica_knows_is_refused_with_the_way_to_it(
    at_front: Hqctl, server: str, service: str
) -> None:
    assert at_front("why", f"{service}-1", "--cluster", "east").out.startswith(f"{service}-1 has not been reported")
    refused = at_front("events")
    assert refused.code != 0
    assert server in refused.err
    assert refused.err.count("\n") == 1
