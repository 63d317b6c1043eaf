"""Consul's read API over a picture: queries, indexes, and which changes wake a blocking query."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

from gateways.consul.answers import ConsulAnswers, ConsulSettings
from gateways.consul.api import ConsulApi
from gateways.consul.indexes import ConsulIndexes
from gateways.consul.questions import DEFAULT_WAIT_S, MOST_WAIT_S, ConsulError, QuestionKind, read_question
from serving.calls.incoming import RequestIds
from serving.clock import ManualClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ, Role
from serving.standard.site import SiteAnswer, SiteRequest
from tests.support.pictures import PictureBuilder, known, picture_of


class Asking:
    """Asks the API of one gateway."""

    def __init__(self, pictured: PictureBuilder, datacenter: str = "", clock: ManualClock | None = None) -> None:
        self.pictured, clock = pictured, clock or ManualClock()
        self.indexes = ConsulIndexes(pictured.picture, clock)
        self.answers = ConsulAnswers(ConsulSettings(datacenter), pictured.picture, self.indexes)
        shared = ServerContext(Limits(max_streams=3), clock, RequestIds("test"))
        self.api = ConsulApi(pictured.picture, self.indexes, self.answers, shared, random.Random(1))

    async def __call__(self, path: str, method: str = "GET") -> SiteAnswer:
        path, _, query = path.partition("?")
        return await self.api.answer(SiteRequest(method, f"/v1/{path}", query.encode(), {}, "localhost"))

    async def json(self, path: str) -> Any:
        said = await self(path)
        assert said.status == 200, said.body
        return json.loads(said.body)

    async def index(self, path: str) -> int:
        return int(dict((await self(path)).headers)[b"x-consul-index"])

    async def waiting(self, path: str) -> asyncio.Task[SiteAnswer]:
        """Start a blocking query, and return it once it waits."""
        index, count = await self.index(path), self.indexes.waiting
        task = asyncio.create_task(self(f"{path}{'&' if '?' in path else '?'}index={index}&wait=5m"))
        while self.indexes.waiting == count:
            assert not task.done(), task.result()
            await asyncio.sleep(0)
        return task


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


THREE = (
    known("web-1", host="10.0.0.1", labels={"tier": "front"}),
    known("web-2", host="10.0.0.2", cluster="west", is_ready=False),
    known("db-1", "db", host="10.0.0.3"),
)
WEB = "health/service/web"


def asking(**options: Any) -> Asking:
    return Asking(picture_of(*THREE, heard=["east", "west"]), **options)


def test_filtering_for_a_caller_looks_only_at_services_it_may_read() -> None:
    """Comparing a filter with the instances of all services would hold up every other caller."""
    one, looked = asking(), list[str]()
    look = one.answers._service_instances

    def noted(name: str, question: Any) -> Any:
        looked.append(name)
        return look(name, question)

    one.answers._service_instances = noted  # type: ignore[method-assign]
    grants = {Role.READER: (Scope(services=Patterns(["db"]), nodes=Patterns(["elsewhere"])),)}
    for scopes, wanted in ((grants, ["db"]), ({Role.READER: (Scope(),)}, ["db", "web"])):
        access = Access(Identity("ann", ProofKind.TOKEN, 0.0), READ, scopes)
        for path in ("health/state/any", "catalog/services", "catalog/nodes", "health/node/node-web-1"):
            looked.clear()
            found = one.answers.body(read_question("GET", f"/v1/{path}", b""), access)
            assert (looked, b"web" in found) == (wanted, "web" in wanted), path


async def test_an_instance_is_a_service_of_its_node_with_one_check() -> None:
    [entry] = await asking().json(f"{WEB}?passing")
    assert (entry["Node"]["Node"], entry["Node"]["Datacenter"]) == ("node-web-1", "east")
    service = entry["Service"]
    assert (service["ID"], service["Address"], service["Port"]) == ("web-1", "10.0.0.1", 80)
    assert (service["Tags"], service["Meta"]["tier"], service["Meta"]["hq-port-http"]) == (
        ["tier=front"],
        "front",
        "80",
    )
    assert [check["Status"] for check in entry["Checks"]] == ["passing"]


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        (WEB, ["web-1", "web-2"]),
        (f"{WEB}?passing=1", ["web-1"]),
        (f"{WEB}?passing=false", ["web-1", "web-2"]),
        (f"{WEB}?tag=tier%3Dfront", ["web-1"]),
        (f"{WEB}?tag=tier%3Dfront&tag=no", []),
        (f"{WEB}?dc=west", ["web-2"]),
        ("health/service/none", []),
    ],
)
async def test_a_query_selects_by_readiness_tag_and_datacenter(path: str, ids: list[str]) -> None:
    assert [entry["Service"]["ID"] for entry in await asking().json(path)] == ids


async def test_catalog_and_health_queries_are_answered() -> None:
    ask = asking()
    assert await ask.json("catalog/services") == {"db": [], "web": ["tier=front"]}
    assert [one["ServiceID"] for one in await ask.json("catalog/service/web")] == ["web-1", "web-2"]
    assert [one["Node"] for one in await ask.json("catalog/nodes")] == ["node-db-1", "node-web-1", "node-web-2"]
    assert [*(await ask.json("catalog/node/node-db-1"))["Services"]] == ["db-1"]
    assert await ask.json("catalog/node/nowhere") is None
    assert [one["ServiceID"] for one in await ask.json("health/state/critical")] == ["web-2"]
    assert [one["ServiceID"] for one in await ask.json("health/state/any")] == ["db-1", "web-1", "web-2"]
    assert await ask.json("health/state/warning") == []
    assert [one["Status"] for one in await ask.json("health/checks/web")] == ["passing", "critical"]
    assert [one["ServiceID"] for one in await ask.json("health/node/node-db-1")] == ["db-1"]
    assert await ask.json("catalog/datacenters") == ["east", "west"]
    assert (await ask.json("agent/self"))["Config"]["Datacenter"] == "hq"
    assert (await ask.json("status/leader"), await ask.json("status/peers")) == ("127.0.0.1:8300", ["127.0.0.1:8300"])


async def test_a_node_lists_its_services_in_both_forms_of_consul() -> None:
    ask = asking()
    by_id, listed = await ask.json("catalog/node/node-web-1"), await ask.json("catalog/node-services/node-web-1")
    assert listed == {"Node": by_id["Node"], "Services": [*by_id["Services"].values()]}
    assert [one["ID"] for one in listed["Services"]] == ["web-1"]
    assert await ask.json("catalog/node-services/nowhere") is None


@pytest.mark.parametrize("path", ["health/connect/web", "catalog/connect/web", "health/connect/none"])
async def test_a_query_for_mesh_proxies_is_empty_and_a_blocking_one_waits(path: str) -> None:
    ask = asking()
    assert await ask.json(path) == []
    waiting = await ask.waiting(path)
    ask.pictured.put(known("web-1", host="10.0.0.9"))
    await turns()
    assert not waiting.done()
    waiting.cancel()


async def test_as_an_agent_the_gateway_has_no_services_whatever_hq_knows() -> None:
    ask = Asking(PictureBuilder())
    ask.pictured.condition.is_known, ask.pictured.condition.heard = False, frozenset()
    ask.pictured.look()
    assert (await ask.json("agent/services"), await ask.json("agent/checks")) == ({}, {})
    assert (await ask("health/connect/web")).status == 500


async def test_a_query_without_a_datacenter_is_about_that_of_the_gateway() -> None:
    ask = asking(datacenter="east")
    assert await ask.json("catalog/services") == {"db": [], "web": ["tier=front"]}
    assert [entry["Service"]["ID"] for entry in await ask.json(WEB)] == ["web-1"]
    assert (await ask.json("agent/self"))["Config"]["Datacenter"] == "east"


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("PUT", "agent/service/register", 501, "ReportStatus"),
        ("PUT", "agent/services", 501, "ReportStatus"),
        ("PUT", "catalog/register", 501, "CreateInstance"),
        ("PUT", "agent/check/pass/x", 501, "docs/gateways.md"),
        ("GET", "kv/key", 501, "reads of /v1/health"),
        ("PUT", WEB, 405, "PUT"),
        ("GET", f"{WEB}?index=x", 400, "index: 'x' is not a number"),
        ("GET", f"{WEB}?wait=long", 400, "wait: 'long' is not a duration"),
        ("GET", f"{WEB}?filter=Service.Port+matches+8", 400, "filter: position 14: expected `==`"),
        ("GET", f"{WEB}?filter=Service.Prt+==+8", 400, "position 1: there is no field 'Service.Prt'"),
        ("GET", "agent/self?filter=a", 400, "filter is not supported for this question"),
        ("GET", f"{WEB}?ns=other", 400, "ns"),
        ("GET", "health/state/odd", 400, "is not a state"),
        ("GET", f"{WEB}?dc=south", 500, "No path to datacenter"),
    ],
)
async def test_a_call_that_is_not_served_is_refused_with_an_explanation(
    method: str, path: str, status: int, words: str
) -> None:
    said = await asking()(path, method)
    assert said.status == status
    assert words in said.body.decode()


def test_durations_are_read_as_go_writes_them() -> None:
    waits = {
        text: read_question("GET", f"/v1/{WEB}", f"wait={text}".encode()).wait_s
        for text in ("10s", "1m30s", "0", "99h")
    }
    assert waits == {"10s": 10.0, "1m30s": 90.0, "0": DEFAULT_WAIT_S, "99h": MOST_WAIT_S}
    assert read_question("GET", "/v1/health/service/a%3Ab", b"").name == "a:b"
    assert read_question("GET", "/v1/catalog/services/", b"").kind is QuestionKind.SERVICES
    with pytest.raises(ConsulError) as outside:
        read_question("GET", "/v2/anything", b"")
    assert outside.value.status == 404


# --- indexes and waiting ------------------------------------------------------------------------------------------


async def test_a_change_of_the_answer_wakes_its_query_and_moves_the_index() -> None:
    ask = asking()
    before = await ask.index(WEB)
    waiting = await ask.waiting(WEB)
    ask.pictured.put(known("web-1", host="10.0.0.9"))
    said = await waiting
    assert int(dict(said.headers)[b"x-consul-index"]) > before
    assert b"10.0.0.9" in said.body
    assert (ask.api.woken, ask.api.timed_out) == (1, 0)


@pytest.mark.parametrize(
    "path", [WEB, "catalog/services", "catalog/nodes", f"{WEB}?passing&dc=east", f"{WEB}?tag=tier%3Dfront"]
)
async def test_an_unrelated_change_wakes_nobody(path: str) -> None:
    ask = asking()
    waiting = await ask.waiting(path)
    ask.pictured.put(known("db-1", "db", host="10.0.0.3", is_ready=False))
    ask.pictured.put(known("db-1", "db", host="10.0.0.3", is_ready=True))
    if "?" in path:
        ask.pictured.put(known("web-2", host="10.0.0.2", cluster="west", labels={"a": "b"}, is_ready=False))
    await turns()
    assert not waiting.done()
    waiting.cancel()


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("catalog/services", known("cart-1", "cart")),
        ("catalog/services", known("web-1", labels={"tier": "back"})),
        ("catalog/nodes", known("cart-1", "cart")),
        ("health/state/any", known("db-1", "db", host="10.0.0.3", is_ready=False)),
        ("health/state/critical", known("db-1", "db", host="10.0.0.3", is_ready=False)),
        ("catalog/service/db", known("db-1", "db", host="10.0.0.3", port=81)),
        ("health/service/new", known("new-1", "new")),
    ],
)
async def test_each_kind_of_query_is_woken_by_a_change_of_its_answer(path: str, change: Any) -> None:
    ask = asking()
    waiting = await ask.waiting(path)
    ask.pictured.put(change)
    assert (await waiting).status == 200


async def test_a_query_with_another_index_than_the_current_is_answered_at_once() -> None:
    ask = asking()
    current = await ask.index(WEB)
    for index in (1, current - 1, current + 1, 2**63):
        assert (await ask(f"{WEB}?index={index}&wait=5m")).status == 200


async def test_a_change_between_two_questions_is_never_missed() -> None:
    ask = asking()
    index = await ask.index(WEB)
    ask.pictured.put(known("web-1", host="10.0.0.9"))
    assert b"10.0.0.9" in (await ask(f"{WEB}?index={index}&wait=5m")).body


async def test_indexes_grow_and_have_no_more_than_the_14_digits_that_lua_keeps_of_a_number() -> None:
    ask = asking(clock=ManualClock(wall_ms=2_000_000_000_000))
    seen = {path: [await ask.index(path)] for path in (WEB, "catalog/services", "catalog/nodes", "health/state/any")}
    for number in range(100):
        ask.pictured.put(known(f"new-{number}", labels={"mark": str(number)}))
        for path, indexes in seen.items():
            indexes.append(await ask.index(path))
    for indexes in seen.values():
        assert indexes == sorted({*indexes})
        assert indexes[-1] < 10**14


async def test_the_modify_index_of_an_instance_changes_with_it_alone() -> None:
    ask = asking()

    async def numbers() -> list[int]:
        return [one["Service"]["ModifyIndex"] for one in await ask.json(WEB)]

    before = await numbers()
    ask.pictured.put(known("web-2", host="10.0.0.2", cluster="west", is_ready=True))
    after = await numbers()
    assert (after[0], after[1] != before[1]) == (before[0], True)


# --- several gateways ---------------------------------------------------------------------------------------------

PATHS = (WEB, f"{WEB}?passing&tag=tier%3Dfront", "catalog/services", "catalog/nodes", "health/state/any")


async def alternating(path: str, index: int, gateways: Sequence[Asking], questions: int = 6) -> int:
    """Ask the gateways in turn, each with the index of the last answer; return how many did not wait to the end."""
    for number in range(questions):
        said = await gateways[number % len(gateways)](f"{path}{'&' if '?' in path else '?'}index={index}&wait=5ms")
        index = int(dict(said.headers)[b"x-consul-index"])
    return questions - sum(one.api.timed_out for one in gateways)


def pair() -> tuple[Asking, Asking]:
    """Two gateways of one HQ with the same picture, which the second, begun later, got in another order."""
    first = Asking(picture_of(known("web-0"), *THREE, heard=["east", "west"]))
    first.pictured.drop(("east", "web-0"))
    second = Asking(picture_of(*reversed(THREE), heard=["east", "west"]), clock=ManualClock(wall_ms=10**12))
    return first, second


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_alternates_between_gateways_waits_at_both(path: str) -> None:
    first, second = pair()
    for gateways in ((first, second), (second, first)):
        assert await alternating(path, await gateways[1].index(path), gateways) == 0
        first.api.timed_out = second.api.timed_out = 0


@pytest.mark.parametrize("path", PATHS)
async def test_an_alternating_client_never_sees_an_index_go_back(path: str) -> None:
    first, second = pair()
    index = seen = 0
    for gateway in (second, first) * 3:
        said = await gateway(f"{path}{'&' if '?' in path else '?'}index={index}&wait=5ms")
        index = int(dict(said.headers)[b"x-consul-index"])
        assert index >= seen
        seen = index


async def test_a_change_wakes_a_client_that_waits_with_the_index_of_another_gateway() -> None:
    first, second = pair()
    for asked, other in ((first, second), (second, first)):
        waiting = asyncio.create_task(asked(f"{WEB}?index={await other.index(WEB)}&wait=5m"))
        await turns()
        assert not waiting.done()
        for gateway in (first, second):
            gateway.pictured.put(known("web-1", host="10.0.0.9", labels={"by": f"change-{id(asked)}"}))
        assert b"10.0.0.9" in (await waiting).body


async def test_once_both_gateways_know_a_change_both_wait() -> None:
    first, second = pair()
    index = await second.index(WEB)
    first.pictured.put(known("web-1", host="10.0.0.9"))
    said = await first(f"{WEB}?index={index}&wait=5m")
    index = int(dict(said.headers)[b"x-consul-index"])
    assert b"10.0.0.9" in said.body
    second.pictured.put(known("web-1", host="10.0.0.9"))
    assert await alternating(WEB, index, (second, first)) == 0


async def test_a_gateway_that_began_after_a_deletion_has_the_same_index() -> None:
    first, second = pair()
    for gateway in (first, second):
        gateway.pictured.drop(("west", "web-2"))
    third = Asking(picture_of(THREE[2], THREE[0]))  # it began after the deletion, and never knew the instance
    assert await alternating(WEB, await third.index(WEB), (first, second, third)) == 0


async def test_an_empty_service_has_the_same_index_at_a_gateway_that_never_knew_it() -> None:
    first, second = asking(), Asking(picture_of(THREE[2]))
    first.pictured.drop(("east", "web-1"), ("west", "web-2"))
    assert await alternating(WEB, await first.index(WEB), (second, first)) == 0


@pytest.mark.parametrize("behind", ["stale", "away", "unheard"])
async def test_a_gateway_that_may_be_behind_lets_clients_of_another_one_wait(behind: str) -> None:
    first, second = pair()
    index = await second.index(WEB)
    first.pictured.put(known("web-1", host="10.0.0.9"))
    newer = int(dict((await first(f"{WEB}?index={index}&wait=5m")).headers)[b"x-consul-index"])
    assert newer > index
    value = True if behind == "stale" else frozenset({"west"})
    setattr(second.pictured.condition, behind, value)
    second.pictured.condition.heard -= {"west"} if behind == "unheard" else set()
    second.pictured.look()
    await second(f"{WEB}?index={newer}&wait=5ms")
    assert second.api.timed_out == 1
    assert (await second(f"{WEB}?index={index - 1}&wait=5m")).status == 200  # an older answer than its own

    waiting = asyncio.create_task(second(f"{WEB}?index={newer}&wait=5m"))
    await turns()
    assert not waiting.done()
    second.pictured.put(known("web-1", host="10.0.0.9"))
    assert b"10.0.0.9" in (await waiting).body


async def test_a_wait_that_times_out_returns_the_same_index() -> None:
    ask = asking()
    index = await ask.index(WEB)
    said = await ask(f"{WEB}?index={index}&wait=10ms")
    assert int(dict(said.headers)[b"x-consul-index"]) == index
    assert (ask.api.timed_out, ask.indexes.waiting) == (1, 0)


async def test_the_number_of_waiting_queries_is_bounded() -> None:
    ask = asking()
    waiting = [await ask.waiting(WEB) for _ in range(3)]
    assert (await ask(f"{WEB}?index={await ask.index(WEB)}&wait=5m")).status == 429
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert ask.indexes.waiting == 0


# --- never worse --------------------------------------------------------------------------------------------------


async def test_if_hq_is_away_at_the_start_a_query_is_an_error_and_no_empty_list() -> None:
    ask = Asking(PictureBuilder())
    ask.pictured.condition.is_known, ask.pictured.condition.heard = False, frozenset()
    ask.pictured.look()
    for path in (WEB, "catalog/services", "catalog/nodes", "health/state/any", "catalog/service/web"):
        said = await ask(path)
        assert (said.status, b"No cluster leader" in said.body) == (500, True)


async def test_if_hq_is_away_later_the_last_answer_comes_with_its_age() -> None:
    ask = asking()
    ask.pictured.condition.stale, ask.pictured.condition.age_s = True, 300.0
    ask.pictured.condition.away = frozenset({"west"})
    said = await ask(WEB)
    headers = dict(said.headers)
    assert len(json.loads(said.body)) == 2
    assert (headers[b"x-consul-lastcontact"], headers[b"x-consul-knownleader"]) == (b"300000", b"false")
    assert headers[b"x-hq-missing-locations"] == b"west"


async def test_while_a_location_was_never_heard_no_service_is_denied() -> None:
    ask = Asking(picture_of(*THREE, heard=["east"], unheard=["west"]))
    assert len(await ask.json("health/service/db")) == 1
    assert (await ask("health/service/none")).status == 500


async def test_a_service_without_ready_instances_is_empty_to_passing_queries_and_a_deleted_one_to_all() -> None:
    ask = Asking(picture_of(known("web-1", is_ready=False)))
    assert (len(await ask.json(WEB)), await ask.json(f"{WEB}?passing")) == (1, [])
    ask.pictured.drop(("east", "web-1"))
    assert (await ask.json(WEB), await ask.json("catalog/services")) == ([], {})


@pytest.mark.long
async def test_ten_thousand_instances_are_one_answer_and_a_change_encodes_one_of_them() -> None:
    ask = Asking(picture_of(*(known(f"web-{i}", host=f"10.0.{i >> 8}.{i & 255}") for i in range(10_000))))
    assert len(await ask.json(f"{WEB}?passing")) == 10_000
    ask.pictured.put(known("web-0", host="10.9.9.9"))
    assert len(await ask.json(f"{WEB}?passing")) == 10_000


async def test_a_body_that_did_not_change_is_the_same_object() -> None:
    ask = asking()
    assert (await ask(WEB)).body is (await ask(WEB)).body


# --- filters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "expression", "expected"),
    [
        (WEB, 'Service.Meta.tier == "front"', ["web-1"]),
        (WEB, "Service.Meta.tier != front", ["web-2"]),
        (WEB, '"tier=front" in Service.Tags', ["web-1"]),
        (WEB, "not `tier=front` in Service.Tags", ["web-2"]),
        (WEB, "Service.Tags contains `tier=front` and Checks.Status == passing", ["web-1"]),
        (WEB, "Service.Tags is empty", ["web-2"]),
        (WEB, "Service.Meta.other is not empty", []),
        (WEB, "tier in Service.Meta", ["web-1"]),
        (WEB, "Checks.Status == critical or Node.Datacenter == east", ["web-1", "web-2"]),
        (WEB, "Node.Datacenter == east and (Checks.Status == critical or Service.Port == 80)", ["web-1"]),
        (WEB, 'Service.Meta["hq-port-http"] == 80 and "0.0" in Service.Address', ["web-1", "web-2"]),
        (f"{WEB}?passing", "Node.Datacenter == west", []),
        ("health/state/any", "ServiceName == db", ["db-1"]),
        ("catalog/service/web", "ServiceMeta.tier == front", ["web-1"]),
        ("catalog/services", "ServiceName != db", ["web"]),
        ("catalog/nodes", "Datacenter == west", ["node-web-2"]),
        ("catalog/node-services/node-web-1", "Service == db", []),
    ],
)
async def test_a_filter_selects_by_the_fields_of_the_answer(
    question: str, expression: str, expected: list[str]
) -> None:
    asked = f"{question}{'&' if '?' in question else '?'}{urlencode({'filter': expression})}"
    found = await asking().json(asked)
    if question.startswith("catalog/node-services"):
        assert found is None
        return
    names = [*found] if isinstance(found, dict) else [_name(one) for one in found]
    assert sorted(names) == expected


def _name(entry: Any) -> str:
    return str(entry["Service"]["ID"] if "Service" in entry else entry.get("ServiceID") or entry["Node"])


async def test_answers_to_many_filters_are_cached_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = asking()
    size = len((await ask(WEB)).body)
    monkeypatch.setattr("gateways.consul.answers._MOST_BYTES", 10 * size)
    for number in range(30):
        await ask(f"{WEB}?{urlencode({'filter': f'Service.Port != {number}'})}")
        ask.pictured.put(known("web-9", labels={"much": "x" * number}))
        await ask(WEB)
        kept = ask.answers._bodies.values()
        assert ask.answers._kept_bytes == sum(len(body) for _, body in kept) <= 10 * size
    assert (await ask(WEB)).body is (await ask(WEB)).body


async def test_a_blocking_query_with_a_filter_wakes_when_its_own_answer_changes() -> None:
    ask = asking()
    waits = await ask.waiting(f"{WEB}?{urlencode({'filter': 'Service.Meta.tier == front'})}")
    ask.pictured.put(known("web-2", host="10.0.0.9", cluster="west"))
    await turns()
    assert not waits.done()
    ask.pictured.put(known("web-3", host="10.0.0.4", labels={"tier": "front"}))
    assert len(json.loads((await waits).body)) == 2


@pytest.mark.parametrize(
    ("question", "status", "body"),
    [
        ("name/db", 200, "passing"),
        ("name/web", 503, "critical"),
        ("id/web-1", 200, "passing"),
        ("id/web-2", 503, "critical"),
        ("id/web-9", 404, "HQ has no 'web-9'"),
        ("name/nobody", 404, "HQ has no 'nobody'"),
    ],
)
async def test_agent_health_is_the_worst_of_the_instances_asked_about(question: str, status: int, body: str) -> None:
    said = await asking()(f"agent/health/service/{question}?format=text")
    assert (said.status, said.body.decode().strip()) == (status, body)
    if status != 404:
        said = await asking()(f"agent/health/service/{question}")
        found = json.loads(said.body)
        worst = found if question.startswith("id/") else found[-1]
        assert (said.status, worst["AggregatedStatus"], worst["Service"]["Service"]) == (
            status,
            body,
            question[3:6] if question.startswith("id/") else question[5:],
        )


async def test_agent_health_of_an_unknown_service_is_a_failure() -> None:
    ask = Asking(picture_of(*THREE[:1], heard=["east"], unheard=["west"]))
    assert [(await ask(f"agent/health/service/{one}")).status for one in ("name/db", "id/db-1")] == [500, 500]
