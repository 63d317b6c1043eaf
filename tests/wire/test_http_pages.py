"""Health, metrics and further pages."""

from __future__ import annotations

import gzip

import pytest

from tests.wire.fake_table import GET, FakeHealth
from tests.wire.raw_http import RawHttp


async def test_livez_says_whether_a_restart_would_help(http: RawHttp, health: FakeHealth) -> None:
    answer = await http.get("/livez")
    assert (answer.status, answer.body) == (200, b"ok\n")
    health.is_live, health.reason = False, "the sweep died"
    answer = await http.get("/livez")
    assert (answer.status, answer.body) == (503, b"not live: the sweep died\n")


async def test_readyz_says_whether_reads_can_be_served(http: RawHttp, health: FakeHealth) -> None:
    answer = await http.get("/readyz")
    assert (answer.status, answer.body) == (200, b"ok: answers are up to 0.100 s old\n")
    health.is_loaded, health.reason = False, "the store has not been read yet"
    answer = await http.get("/readyz")
    assert (answer.status, answer.body) == (503, b"not ready: the store has not been read yet\n")


async def test_a_stale_replica_is_ready_unless_freshness_is_asked_for(http: RawHttp, health: FakeHealth) -> None:
    health.staleness, health.reason = 12.3456, "the store does not answer"
    assert (await http.get("/readyz")).status == 200
    assert (await http.get("/readyz?fresh=12.5s")).status == 200
    answer = await http.get("/readyz?fresh=10s")
    assert answer.status == 503
    assert answer.body == b"stale: answers are up to 12.346 s old, 10s was requested: the store does not answer\n"


async def test_a_replica_that_doubts_its_store_is_ready_unless_trust_is_asked_for(
    http: RawHttp, health: FakeHealth
) -> None:
    assert (await http.get("/readyz?trusted")).status == 200
    health.why_doubted = "it holds 0 where there were 3"
    answer = await http.get("/readyz?fresh=10s")
    assert (answer.status, answer.body.splitlines()[-1]) == (200, b"in doubt: it holds 0 where there were 3")
    answer = await http.get("/readyz?trusted&fresh=10s")
    assert (answer.status, answer.body) == (503, b"in doubt: it holds 0 where there were 3\n")


async def test_an_unknown_age_is_not_fresh(http: RawHttp, health: FakeHealth) -> None:
    health.staleness = None
    assert (await http.get("/readyz")).status == 200
    assert (await http.get("/readyz?fresh=1000h")).status == 503


@pytest.mark.parametrize("duration", ["500ms", "1.5m", "10s", "1h", "1m30s"])
async def test_freshness_is_a_duration(http: RawHttp, duration: str) -> None:
    assert (await http.get(f"/readyz?fresh={duration}")).status == 200


@pytest.mark.parametrize("duration", ["10", "s", "-1s", "1e3s", "10 s", "1,5s", "nans", "9" * 50 + "s"])
async def test_an_invalid_duration_is_refused_and_the_message_quotes_it(http: RawHttp, duration: str) -> None:
    answer = await http.get(f"/readyz?fresh={duration.replace(' ', '%20')}")
    assert answer.status == 400
    assert "is not a duration" in answer.json()["message"]


async def test_metrics_are_in_the_format_that_is_asked_for(http: RawHttp) -> None:
    plain = await http.get("/metrics")
    assert plain.status == 200
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert b"hq_things_total 1.0" in plain.body
    open_metrics = await http.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert open_metrics.body.endswith(b"# EOF\n")


@pytest.mark.parametrize("version", ["abc", "1.0.0-rc1", "1..2"])
async def test_metrics_in_an_unknown_version_are_in_the_usual_format(http: RawHttp, version: str) -> None:
    answer = await http.get("/metrics", accept=f"application/openmetrics-text;version={version}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")


async def test_metrics_count_calls_by_method_and_outcome(http: RawHttp) -> None:
    await http.post(b'{"id":"web-1"}')
    await http.post(b'{"id":"fail:NotFound"}')
    lines = (await http.get("/metrics")).body.decode().splitlines()
    labels = f'method="{GET}",transport="http"'
    assert f'hq_calls_total{{code="OK",{labels}}} 1.0' in lines
    assert f'hq_calls_total{{code="NOT_FOUND",{labels}}} 1.0' in lines
    assert f"hq_call_seconds_count{{{labels}}} 1.0" in lines


async def test_a_large_page_is_compressed_if_asked_for(http: RawHttp) -> None:
    query = "&".join(f"parameter{n:03}=1" for n in range(100))
    answer = await http.get(f"/extra?{query}", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body).startswith(b'["parameter000,')


async def test_pages_can_be_added_by_path(http: RawHttp) -> None:
    assert (await http.get("/extra?b=1&a=2")).body == b'["a,b"]'


async def test_a_query_without_bounds_is_refused(http: RawHttp) -> None:
    answer = await http.get("/extra?" + "&".join("a=1" for _ in range(200)))
    assert answer.status == 400


async def test_head_is_get_without_the_body(http: RawHttp) -> None:
    answer = await http.get("/livez", method="HEAD")
    assert (answer.status, answer.headers["content-length"]) == (200, "3")


async def test_a_page_takes_no_posts(http: RawHttp) -> None:
    answer = await http.post(b"", "/livez")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_an_unknown_path_is_a_short_json(http: RawHttp) -> None:
    answer = await http.get("/favicon.ico")
    assert (answer.status, answer.json()["code"]) == (404, "unimplemented")
    assert len(answer.body) < 500
