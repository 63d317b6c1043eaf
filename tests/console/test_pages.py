"""Each page over a real HQ: a healthy, a broken, a silent and a hostile-text case."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import pytest

from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb
from tests.console.scene import HOSTILE, Cloud, cloud, instance, report


@pytest.fixture
async def at() -> AsyncIterator[Cloud]:
    async with cloud() as made:
        yield made


PAGES = (
    *("/", "/services", "/services/web", "/services/cart", "/services/mail", "/services/evil"),
    *("/instances", "/instances/test/web-0", "/instances/test/evil-1", "/nodes", "/nodes/node-0"),
    *("/events", "/signin", "/find?q=x"),
)


async def test_the_first_page_tells_what_is_below_its_floor_and_why(at: Cloud) -> None:
    page = await at.browser.get("/")
    assert page.status_code == 200
    assert "cart: 1 of 4 instances ready" in page.text
    assert "mail: 0 of 2 instances ready" in page.text
    assert "2 instances: never reported" in page.text
    assert "3 instances: readiness check failed: GET /ping answered 503" in page.text
    assert "web:" not in page.text


async def test_crashes_are_counted_over_all_instances_on_the_first_page_and_on_the_services_own(at: Cloud) -> None:
    crowd = [instance(f"shop-{n:03}", "shop", f"node-{n % 7}") for n in range(60)]
    await at.client.apply(crowd)
    for number, one in enumerate(crowd):
        await report(at.client, one, ready=number >= 55, reason="Crashed", message="exit code 1")
    first, own = (await at.browser.get("/")).text, (await at.browser.get("/services/shop")).text
    assert "shop: 5 of 60 instances ready" in first
    assert "55 instances: crashed: exit code 1" in first
    assert "55 instances: crashed: exit code 1" in own
    assert "50 instances" not in first + own


async def test_ten_causes_are_shown_and_the_others_counted(at: Cloud) -> None:
    names = [f"lost-{n:02}" for n in range(12)]
    await at.client.apply([instance(f"{name}-1", name, f"rack-{name}") for name in names])
    first, folded, rest = (await at.browser.get("/")).text.partition("<details><summary>and 5 more causes</summary>")
    assert folded  # with cart, evil and mail
    assert len(re.findall(r'<li class="(?:bad|warn|note)">', first)) == 10
    assert sum(f"{name}: 0 of 1" in first + rest for name in names) == 12


async def test_a_stopped_service_is_shown_as_a_state_and_not_as_a_problem(at: Cloud) -> None:
    stopped = [instance(f"idle-{n}", "idle", "node-8") for n in range(3)]
    for one in stopped:
        one.spec.revision[0].target = ipb.REVISION_TARGET_INSTALLED
    await at.client.apply(stopped)
    for one in stopped:
        await report(at.client, one, ready=False, reason="NotWantedReady")
    assert "idle" not in (await at.browser.get("/")).text
    for path in ("/services", "/services/idle", "/nodes", "/nodes/node-8"):
        page = (await at.browser.get(path)).text
        assert "3 instances switched off" in page, path
        assert "0</b> of 3" not in page, path
    row = (await at.browser.get("/services?q=idle")).text
    assert "none ready" not in row
    assert (await at.client.count(by=pb.COUNT_GROUP_REASON)).groups[0].key


async def test_a_service_shows_instances_that_are_not_ready_first_each_with_its_reason(at: Cloud) -> None:
    page = (await at.browser.get("/services/cart")).text
    assert "readiness check failed" in page
    assert "GET /ping answered 503" in page
    assert page.index("cart-3") < page.index("cart-0")


async def test_a_healthy_service_is_complete(at: Cloud) -> None:
    page = (await at.browser.get("/services/web")).text
    assert "<b>4</b> of 4" in page
    assert "complete" in page


async def test_an_instance_that_never_reported_says_so(at: Cloud) -> None:
    page = (await at.browser.get("/instances/test/mail-0")).text
    assert "never reported" in page or "not reported" in page or "no report" in page.lower()


@pytest.mark.parametrize("path", PAGES)
async def test_hostile_texts_stay_texts(at: Cloud, path: str) -> None:
    page = (await at.browser.get(path)).text
    assert HOSTILE not in page
    assert "<img" not in page


async def test_the_hostile_text_is_shown_whole_where_it_belongs(at: Cloud) -> None:
    page = html.unescape((await at.browser.get("/instances/test/evil-1")).text)
    assert HOSTILE in page


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/services/none", 404),
        ("/instances/test/none", 404),
        ("/nodes/none", 404),
        ("/services/web/suspend", 404),
        ("/nodes/node-0/suspend", 405),
        ("/services/%3Cscript%3E", 404),
        ("/instances?page=nonsense", 200),
        ("/services?from=999999999", 200),
        ("/services?from=-1&sort=nonsense", 200),
        ("/many/nothing?order=suspend", 404),
        ("/many/nodes?order=nothing", 400),
    ],
)
async def test_odd_addresses_are_answered_with_a_page_and_the_right_status(at: Cloud, path: str, status: int) -> None:
    answer = await at.browser.get(path)
    assert answer.status_code == status
    assert "<main" in answer.text
    assert "<script>" not in answer.text


async def test_a_search_goes_straight_to_the_one_thing_of_this_name(at: Cloud) -> None:
    assert (await at.browser.get("/find?q=web")).headers["location"] == "/services/web"
    assert (await at.browser.get("/find?q=web-1")).headers["location"] == "/instances/test/web-1"
    assert (await at.browser.get("/find?q=node-1")).headers["location"] == "/nodes/node-1"
    assert "Nothing is called" in (await at.browser.get("/find?q=nobody")).text


async def test_a_search_finds_parts_of_names_ignoring_case(at: Cloud) -> None:
    assert (await at.browser.get("/find?q=AIL")).headers["location"] == "/services/mail"
    nodes = (await at.browser.get("/find?q=ODE-")).text
    assert all(f'href="/nodes/node-{number}"' in nodes for number in range(4))
    instances = (await at.browser.get("/find?q=Cart-")).text
    assert all(f'href="/instances/test/cart-{number}"' in instances for number in range(4))
    assert "instance mail" not in instances


async def test_the_last_output_of_a_failing_instance_is_on_the_first_page_its_services_and_its_own(at: Cloud) -> None:
    crashing = instance("shop-1", "shop", "node-1")
    await at.client.apply([crashing])
    begun = await at.client.begin_reporting("shop-1", "r1", node="node-1")
    status = ipb.RevisionStatus(id="r1", incarnation=begun.incarnation, sequence=1)
    status.ready.status, status.ready.reason = ipb.CONDITION_STATUS_FALSE, "Crashed"
    container = status.container.add(name="main", restart_count=3)
    ended = container.last_termination
    ended.exit_code, ended.output = 3, f"cannot open /etc/shop.conf\n{HOSTILE}"
    await at.client.report("shop-1", status, uid=begun.uid, node="node-1")
    for path in ("/", "/services/shop", "/instances/test/shop-1"):
        page = (await at.browser.get(path)).text
        assert "cannot open /etc/shop.conf" in page, path
        assert "r1/main: exit code 3" in page, path
        assert HOSTILE not in page, path


async def test_the_instances_of_a_filter_come_page_by_page(at: Cloud) -> None:
    await at.client.apply([instance(f"many-{n:03}", "many", "node-9") for n in range(120)])
    seen: list[str] = []
    page, path = "", "/instances?service=many"
    while path:
        page = (await at.browser.get(path)).text
        seen += [part.partition('"')[0] for part in page.split('href="/instances/test/')[1:]]
        path = html.unescape(page.split('">Next page')[0].rpartition('href="')[2]) if "Next page" in page else ""
    assert seen == [f"many-{n:03}" for n in range(120)]
    back = html.unescape(re.findall(r'rel="prev" href="([^"]*)"', page)[0])
    page = (await at.browser.get(back)).text
    assert "many-050" in page
    assert "many-049" not in page
    back = html.unescape(re.findall(r'rel="prev" href="([^"]*)"', page)[0])
    assert back == "/instances?service=many"


async def test_planned_work_on_many_nodes_is_planned_then_begun_and_ended(at: Cloud) -> None:
    await at.browser.submit("/nodes/node-2/suspend", {"hours": "1", "reason": "earlier", "cluster": "test"})
    rows = "chosen=node-0&chosen=node-1&chosen=node-2&chosen=nowhere"
    plan = re.sub(r"<[^>]+>", " ", (await at.browser.get(f"/many/nodes?order=suspend&{rows}")).text)
    assert "For 3 of 4 nodes." in plan
    assert re.search(r"node-1\s+test\s+1 of 3 instances ready\s+nothing expires", plan)
    assert re.search(r"planned work by \S+: earlier\s+it ends\s+in (?s:.{,60}?)nothing expires, in place of", plan)
    assert "it has no instance" in plan
    assert len((await at.client.admin.list_suspensions()).suspensions) == 1  # a plan orders nothing
    both = ["node-0", "node-1"]
    page = (await at.browser.get("/many/nodes?order=suspend&chosen=node-0&chosen=node-1")).text
    (shown,) = re.findall(r'name="shown" value="(\w+)"', page)
    await at.client.admin.suspend_node("node-1", duration_s=60.0, by="bob", reason="fans")
    stale = {"order": "suspend", "chosen": both, "hours": "2", "reason": "new disks", "shown": shown}
    left = (await at.browser.submit("/many/nodes", stale)).headers["location"]
    assert "meanwhile this has changed" in await at.browser.flash()
    assert "in place of the work that there is" in (await at.browser.get(left)).text
    await at.client.admin.resume_node("node-1")
    form = {"order": "suspend", "chosen": both, "hours": "2", "reason": "new disks"}
    assert (await at.browser.submit("/many/nodes", {**form, "reason": ""})).status_code == 400
    assert (await at.browser.submit("/many/nodes", form)).headers["location"] == "/nodes"
    assert "Begin planned work: done for 2 nodes." in await at.browser.flash()
    assert len((await at.client.admin.list_suspensions()).suspensions) == 3
    await at.browser.submit("/many/nodes", {"order": "resume", "chosen": both})
    assert [one.node_name for one in (await at.client.admin.list_suspensions()).suspensions] == ["node-2"]
    await at.browser.submit("/many/nodes", {"order": "resume", "chosen": both})
    assert "Nothing was done: choose rows" in await at.browser.flash()
