"""Discovery while HQ is away or refuses: what it keeps, what it saves, and how it says so."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import time
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from hqclient.discovery import EndpointChanges, NoEndpoints, NotReady, Origin
from hqclient.discovery.feed import FeedSettings
from tests.clients.deeds import refuse
from tests.clients.discovering import QUICK, discovery, ids, until
from tests.clients.telling import History, TellingReplica, as_step

Code = grpc.StatusCode


async def test_discovery_answers_from_the_last_good_state_and_says_how_old_it_is(
    history: History, telling: list[TellingReplica]
) -> None:
    history.write("web-1")
    async with discovery(telling).service("web", port="http") as web:
        await web.ready(live=True)
        for replica in telling:
            await replica.stop()
        await until(lambda: web.source is Origin.KEPT)
        before = web.age_s
        await asyncio.sleep(0.05)
        assert web.age_s >= before + 0.05
        assert (ids(web), web.stale, web.pick().instance_id) == (["web-1"], True, "web-1")
        assert web.error is not None
        history.write("web-2")
        await telling[1].restart()
        await web.ready(at_least=2)
        await until(lambda: not web.stale)
        assert web.resyncs == 0
        await until(lambda: web.error is None)


async def test_with_hq_away_for_the_whole_start_the_saved_addresses_serve(
    history: History, telling: list[TellingReplica], tmp_path: Path
) -> None:
    history.write("web-1", "web-2")
    async with discovery(telling, tmp_path).service("web", port="http") as web:
        await web.ready()
    for replica in telling:
        await replica.stop()
    hour_later = discovery(telling, tmp_path, wall=lambda: time.time() + 3600)
    async with hour_later.service("web", port="http") as web:
        await web.ready(3.0)
        assert (ids(web), web.source, web.stale) == (["web-1", "web-2"], Origin.SAVED, True)
        assert 3600 <= web.age_s < 3700
        assert {web.pick().instance_id for _ in range(2)} == {"web-1", "web-2"}
        with pytest.raises(NotReady, match=r"in a list that is 36\d\d s old"):
            await web.ready(0.05, live=True)


async def test_a_saved_list_from_the_future_is_of_unknown_age_and_never_fresh(
    history: History, telling: list[TellingReplica], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history.write("web-1")
    async with discovery(telling, tmp_path, wall=lambda: time.time() + 7_200).service("web", port="http") as web:
        await web.ready()
    for replica in telling:
        await replica.stop()
    for _ in range(2):  # what the first process saves is of unknown age for the second one, too
        async with discovery(telling, tmp_path).service("web", port="http") as web:
            await web.ready(3.0)
            assert (ids(web), web.source, web.stale, web.age_s) == (["web-1"], Origin.SAVED, True, math.inf)
            with pytest.raises(NotReady, match="in a list that is of unknown age"):
                await web.ready(0.05, live=True)
            await web._feed._save()
    assert "web.json has a date in the future or none" in caplog.text


async def test_a_restart_goes_on_after_the_saved_state_and_repeats_no_change(
    history: History, telling: list[TellingReplica], tmp_path: Path
) -> None:
    history.write("web-1")
    async with discovery(telling, tmp_path).service("web", port="http") as web:
        await web.ready()
        for _ in range(3):
            history.write("web-1")
        await until(lambda: web.endpoints[0].labels["mark"] == str(history.version))
    saved = history.version
    history.write("web-2")
    told: list[EndpointChanges] = []
    async with discovery(telling, tmp_path).service("web", port="http") as web:
        web.on_change(told.append)
        await web.ready(at_least=2)
        assert web.resyncs == 0
        await until(lambda: len(told) == 2)
    assert [as_step(changes) for changes in told] == [{("+", "web-1", str(saved))}, history.steps[-1]]


async def test_a_file_that_is_damaged_is_no_obstacle(
    history: History, telling: list[TellingReplica], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history.write("web-1")
    (tmp_path / "web.json").write_text("{")
    async with discovery(telling, tmp_path).service("web", port="http") as web:
        await web.ready()
    assert "starting without it" in caplog.text
    assert json.loads((tmp_path / "web.json").read_text())["instances"][0]["id"] == "web-1"


async def test_a_directory_that_cannot_be_written_is_no_obstacle(
    history: History, telling: list[TellingReplica], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history.write("web-1")
    (tmp_path / "file").touch()
    async with discovery(telling, tmp_path / "file").service("web", port="http") as web:
        await web.ready()
    assert "would use older addresses" in caplog.text or "cannot be read" in caplog.text


async def test_a_handle_that_knows_nothing_yet_says_so(telling: list[TellingReplica]) -> None:
    for replica in telling:
        await replica.stop()
    async with discovery(telling).service("web", port="http") as web:
        assert (web.endpoints, web.source, web.age_s, web.stale) == ((), Origin.NONE, float("inf"), True)
        with pytest.raises(NoEndpoints, match="nothing is known about web yet"):
            web.pick()
        await until(lambda: web.error is not None)
        with pytest.raises(
            NotReady, match=r"after 0\.2 s: nothing is known about web yet; HQ: cannot connect to .*: nothing listens"
        ):
            await web.ready(0.2)


@pytest.mark.parametrize("code", [Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.UNIMPLEMENTED])
async def test_a_refusal_does_not_end_the_watch_for_good(
    code: grpc.StatusCode, history: History, telling: list[TellingReplica], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    history.write("web-1")
    for replica in telling:
        replica.order("WatchInstances", refuse(code, "REFUSED"))
    async with discovery(telling).service("web", port="http") as web:
        await until(lambda: web.error is not None and web.error.code is code)
        await web.ready()
    assert "HQ refuses the watch" in caplog.text


async def test_a_process_that_hq_refuses_does_not_overwrite_the_newer_file_of_another_process(
    history: History, telling: list[TellingReplica], tmp_path: Path
) -> None:
    history.write("web-1")
    async with discovery(telling, tmp_path).service("web", port="http") as web:
        await web.ready(live=True)
    history.write("web-2")
    for replica in telling:
        for _ in range(200):
            replica.order("WatchInstances", refuse(Code.PERMISSION_DENIED, "PERMISSION_DENIED"))
    settings = replace(QUICK, feed=FeedSettings(save_after_s=0.01, save_every_s=0.05, refused_s=0.02))
    async with discovery(telling, tmp_path, settings=settings).service("web", port="http") as web:
        await until(lambda: web.error is not None)
        theirs = (tmp_path / "web.json").read_text().replace("web-1", "web-2")
        (tmp_path / "web.json").write_text(theirs)
        await asyncio.sleep(0.3)
    assert (tmp_path / "web.json").read_text() == theirs


@pytest.mark.long
async def test_a_handle_can_be_left_at_any_moment(
    history: History, telling: list[TellingReplica], tmp_path: Path
) -> None:
    history.write("web-1")
    rng = random.Random(3)
    async with asyncio.timeout(100):
        for _ in range(150):
            async with discovery(telling, tmp_path).service("web", port="http"):
                await asyncio.sleep(rng.random() * 0.01)


async def test_metadata_that_cannot_be_had_for_a_while_does_not_end_the_watch(
    history: History, telling: list[TellingReplica], caplog: pytest.LogCaptureFixture
) -> None:
    history.write("web-1")
    failures = iter([FileNotFoundError("token"), ValueError("token")])

    def metadata() -> tuple[tuple[str, str], ...]:
        for failure in failures:
            raise failure
        return ()

    async with discovery(telling, metadata=metadata).service("web", port="http") as web:
        await web.ready(live=True)
        assert ids(web) == ["web-1"]
    assert caplog.text.count("starting over") == 2
