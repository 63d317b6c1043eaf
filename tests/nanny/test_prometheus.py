"""Questions to Prometheus: a stand-in and a real one answer alike, and only what the configuration lists is asked."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from control.outgoing import OutgoingHttp
from hqcli.documents import BadDocument
from nanny.actions.checks import RolloutChecks
from nanny.automaton.service import RunningAction
from nanny.automaton.states import Action
from nanny.world.prometheus import NoAnswer, NoReading, PrometheusPort, PrometheusSource, read_prometheus
from nannypb.v1.service_pb2 import RolloutCheck
from tests.support.prometheus_stand_in import URL, PrometheusStandIn
from tests.support.reserved_port import KeptPort
from tests.support.sample_instances import eventually


@asynccontextmanager
async def _real_prometheus(folder: Path) -> AsyncIterator[PrometheusPort]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on PATH: apt-get install prometheus")
    (folder / "prometheus.yml").write_text("{}\n")
    kept = KeptPort()
    address = f"127.0.0.1:{kept.number}"
    process = await asyncio.create_subprocess_exec(
        *(program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
        *(f"--web.listen-address={address}", "--log.level=error"),
    )
    port = PrometheusPort({"main": PrometheusSource(f"http://{address}")})

    async def answers() -> bool:
        try:
            return bool(await port.read("main", "vector(1)", "web"))
        except NoReading:
            return False

    try:
        await eventually(answers, 60.0, "prometheus answers")
        yield port
    finally:
        await port.close()
        with suppress(ProcessLookupError):  # it ended
            process.terminate()
        await process.wait()


@pytest.fixture(params=["stand-in", pytest.param("real", marks=pytest.mark.long)])
async def prometheus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PrometheusPort]:
    if request.param == "stand-in":
        yield PrometheusStandIn().port()
        return
    async with _real_prometheus(tmp_path) as port:
        yield port


async def test_vectors_and_scalars_have_values_and_any_other_result_is_refused(prometheus: PrometheusPort) -> None:
    assert await prometheus.read("main", "vector(1)", "web") == [1.0]
    assert await prometheus.read("main", "42", "web") == [42.0]
    assert str(await prometheus.read("main", "0 / 0", "web")) == "[nan]"
    assert await prometheus.read("main", "vector(1) / 0", "web") == [float("inf")]
    assert await prometheus.read("main", "absent_metric", "web") == []
    for query, told in (
        ("sum(", "Prometheus main answers 400: .*parse error"),
        ("vector(1)[5m:1m]", "is no vector and no scalar"),
        ('"text"', "is no vector and no scalar"),
    ):
        with pytest.raises(NoReading, match=told):
            await prometheus.read("main", query, "web")
    with pytest.raises(NoReading, match="has no Prometheus other any more"):
        await prometheus.read("other", "42", "web")


async def test_a_token_is_read_at_each_query_and_a_prometheus_that_is_down_gives_no_reading(tmp_path: Path) -> None:
    stand_in, token = PrometheusStandIn(), tmp_path / "token"
    port = stand_in.port(str(token))
    with pytest.raises(NoReading, match="main does not answer"):
        await port.read("main", "42", "web")
    for text in ("one", "two"):
        token.write_text(f"{text}\n")
        await port.read("main", "42", "web")
        assert stand_in.headers["authorization"] == f"Bearer {text}"
    token.write_text("t\u00f6ken", encoding="utf-8")
    with pytest.raises(NoReading, match="main does not answer: 'ascii' codec"):
        await port.read("main", "42", "web")
    token.write_text("three")
    stand_in.is_down = True
    with pytest.raises(NoReading, match="main does not answer"):
        await port.read("main", "42", "web")


async def test_a_query_names_its_service_if_the_configuration_asks_for_that() -> None:
    stand_in = PrometheusStandIn()
    source = PrometheusSource(URL, parameters={"service": "{service}", "extra_label": "service={service}"})
    port = PrometheusPort({"main": source}, OutgoingHttp(stand_in))
    await port.read("main", "42", "web&service=mail")
    assert stand_in.parameters == {"service": ["web&service=mail"], "extra_label": ["service=web&service=mail"]}


class _Hangs:
    """A Prometheus; `ends` lets its questions fail."""

    def __init__(self) -> None:
        self.asked = 0
        self.ends = asyncio.Event()

    async def read(self, _name: str, _query: str, _service: str) -> list[float]:
        self.asked += 1
        await self.ends.wait()
        raise NoAnswer("main does not answer")


@pytest.mark.parametrize(("later_s", "asked"), [(1.0, 1), (6.0, 2)])
async def test_a_prometheus_that_hangs_is_asked_by_one_service_at_a_time(later_s: float, asked: int) -> None:
    hangs, clock = _Hangs(), SimpleNamespace(at_s=0.0)
    clock.now = lambda: clock.at_s
    contents = SimpleNamespace(revision_id=lambda *_: "v2")
    checks = RolloutChecks(hangs, contents, clock)  # type: ignore[arg-type]
    running = RunningAction("v2", Action.ACTIVATE, 1)

    async def words(service: str) -> str:
        subject: Any = SimpleNamespace(id=service, instances={})
        return (await checks.verdict(subject, running, RolloutCheck(name="errors", prometheus="main"))).words

    first = asyncio.create_task(words("web-0"))
    await asyncio.sleep(0)
    hangs.ends.set()
    assert await first == "main does not answer"
    hangs.ends.clear()
    clock.at_s = later_s
    others = [asyncio.create_task(words(f"web-{number}")) for number in range(1, 40)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert sum(not one.done() for one in others) == asked - 1
    hangs.ends.set()
    assert {await one for one in others} == {"main does not answer"}
    assert hangs.asked == asked


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prometheus: {main: {url: 'http://a:9090/'}}", ""),
        ("prometheus: {main: {url: 'ftp://a'}}", "prometheus.main.url: 'ftp://a' is no address"),
        ("prometheus: {main: {url: 'http://me:secret@a'}}", "is no address"),
        ("prometheus: {main: {url: 'http://a', token: x}}", "prometheus.main"),
        ("prometheus: {main: {url: 'http://a', token-file: /none}}", "/none cannot be read"),
        ("prometheus: {main: {url: 'http://a', parameters: service}}", "main.parameters: write NAME: TEXT"),
        ("prometheus: {main: {url: 'http://a', parameters: {query: '1'}}}", "main.parameters.query: is that of the"),
        ("prometheus: {main: {url: 'https://a', ca: /none}}", "/none cannot be read"),
        ("main: {url: 'http://a'}", "write `prometheus:"),
        ("prometheus: [", "prometheus.yaml: line 2"),
    ],
)
def test_the_file_names_what_may_be_asked(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "prometheus.yaml"
    file.write_text(text)
    if not told:
        assert read_prometheus(str(file)) == {"main": PrometheusSource("http://a:9090")}
        return
    with pytest.raises(BadDocument, match=told):
        read_prometheus(str(file))
