"""Each address of the console: healthy, silent, without its server, with hostile texts; each order sent by hand.

The addresses are those of the routes: whoever adds a page adds a line here.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from console.pages.editing import content_mark
from console.pages.routes import routes
from serving.auth.security import Security
from tests.console.fake_cms import FakeCms
from tests.console.fake_walle import FakeWalle
from tests.console.fakes import BAD, NEW, OLD, FakeNanny, serving
from tests.console.scene import HOSTILE, Browser, Cloud, browser_at, cloud, console_over, secured_console, servers_at
from tests.support.authority import requests
from tests.support.secured import Secured, served

# By pattern: where something is there, and what a healthy page says of it.
PAGES: Final = {
    "/": ("/", "cart: 1 of 4 instances ready"),
    "/find": ("/find?q=node-0", "node node-0"),
    "/services": ("/services", "below its floor"),
    "/services/{service}": ("/services/cart", "readiness check failed"),
    "/services/{service}/edit": ("/services/web/edit", "memory: 2"),
    "/services/{service}/attributes": ("/services/web/attributes", "max_unavailable: 10%"),
    "/services/{service}/snapshots": ("/services/web/snapshots", "DEACTIVATE_PENDING"),
    "/services/{service}/snapshots/{snapshot}": (f"/services/web/snapshots/{OLD}", "HOOK_SEMI_FAILED"),
    "/instances": ("/instances?service=mail", "never reported"),
    "/instances/{cluster}/{instance}": ("/instances/test/evil-1", "not ready, reported by its agent"),
    "/nodes": ("/nodes", "Guard"),
    "/nodes/{node}": ("/nodes/node-0", "cart-0"),
    "/many/{kind}": ("/many/nodes?order=suspend&chosen=node-0", "nothing expires"),
    "/disruptions": ("/disruptions", "rack-7"),
    "/disruptions/{task}": ("/disruptions/reboot-1", "Held by"),
    "/windows": ("/windows", "project search"),
    "/plan": ("/plan?hosts=node-1%20node-2", "holds all of mail"),
    "/hosts": ("/hosts", "24 hosts in 2 racks"),
    "/hosts/{host}": ("/hosts/host-02", "waits for the CMS"),
    "/projects": ("/projects", "search"),
    "/projects/{project}": ("/projects/search", "it would trip at once"),
    "/scenarios": ("/scenarios", "2 of 3 agree"),
    "/scenarios/{scenario}": ("/scenarios/s1-upgrade", "Who blocks it"),
    "/events": ("/events", "expired"),
    "/signin": ("/signin", "Sign in"),
}
# Other states of these pages, with dialogs and tables that the first one lacks.
STATES: Final = (
    *("/services?q=shop", "/services/shop/edit", "/services?sort=-ready", "/scenarios/kernel", "/nothing"),
    *(f"/services/web/snapshots/{BAD}", "/many/services?order=pause&chosen=web&chosen=cart"),
    f"/many/instances?order=ACTIVE&service=web&snapshot={BAD}&chosen=test/web-0&chosen=test/web-2",
)
# By pattern: every order that a page can give, complete but for the rights.
ORDERS: Final[dict[str, list[tuple[str, dict[str, str]]]]] = {
    "/services/{service}/target": [("/services/web/target", {"snapshot": BAD, "target": "ACTIVE", "comment": "x"})],
    "/services/{service}/edit": [
        (
            "/services/web/edit",
            {"step": "store", "content": "memory: 4", "head": NEW, "compared": content_mark(b"memory: 4\n")},
        )
    ],
    "/services/{service}/attributes": [
        (
            "/services/web/attributes",
            {"step": "store", "content": "{}", "info_version": "0", "compared": content_mark(b"{}")},
        )
    ],
    "/services/{service}/attributes/head": [("/services/web/attributes/head", {"set": "on", "info_version": "0"})],
    "/services/{service}/snapshots/{snapshot}/target": [
        (f"/services/web/snapshots/{OLD}/target", {"instance": "web-1", "location": "test", "target": "PREPARED"})
    ],
    "/services/{service}/actions/{order}": [
        (f"/services/web/actions/{order}", {"comment": "x", "order_id": "order-7", "step": "3"})
        for order in ("pause", "resume", "promote", "abort", "stop", "delete")
    ],
    "/nodes/{node}/suspend": [("/nodes/node-0/suspend", {"cluster": "test", "hours": "1", "reason": "x"})],
    "/nodes/{node}/resume": [("/nodes/node-0/resume", {"cluster": "test"})],
    "/many/{kind}": [
        ("/many/nodes", {"order": "suspend", "chosen": "node-1", "hours": "1", "reason": "x"}),
        ("/many/services", {"order": "pause", "chosen": "web", "comment": "x"}),
        ("/many/instances", {"order": "CREATED", "service": "web", "snapshot": OLD, "chosen": "test/web-1"}),
    ],
    "/guard/{cluster}/{way}": [(f"/guard/HQ/{way}", {"reason": "x"}) for way in ("release", "force")],
    "/windows/{order}": [
        ("/windows/freeze", {"begin": "2026-12-05", "end": "2026-12-06", "reason": "x"}),
        ("/windows/put", {"name": "nights", "begin": "22:00", "end": "06:00"}),
        ("/windows/delete", {"name": "nights"}),
    ],
    "/cms/{order}": [(f"/cms/{order}", {"reason": "x"}) for order in ("freeze", "unfreeze", "open")],
    "/disruptions/{task}/{order}": [
        (f"/disruptions/rack-7/{order}", {"reason": "x", "hours": "1"}) for order in ("extend", "end")
    ],
    "/hosts/{host}/{order}": [
        ("/hosts/host-01/state", {"state": "MAINTENANCE", "reason": "x"}),
        ("/hosts/host-01/operation", {"kind": "reboot", "reason": "x"}),
        ("/hosts/host-02/cancel", {"reason": "x"}),
    ],
    "/projects/{project}/automation": [
        ("/projects/search/automation", {"automation": "healing", "on": on, "reason": "x"}) for on in ("yes", "no")
    ],
    "/scenarios": [("/scenarios", {"scenario": "s2", "switch": "s1", "reason": "x"})],
    "/scenarios/{scenario}/end": [
        ("/scenarios/s1-upgrade/end", {"done": done, "reason": "x"}) for done in ("yes", "no")
    ],
    "/scenarios/{scenario}/steer": [
        ("/scenarios/s1-upgrade/steer", {"steering": word, "reason": "x"}) for word in ("pause", "continue", "retry")
    ],
    "/scenarios/{scenario}/agree": [("/scenarios/s1-upgrade/agree", {"project": "search", "reason": "x"})],
}
_SIGNING: Final = {"/signin", "/signout"}
_OF_REGISTRY: Final = ("/services", "/instances", "/nodes", "/events", "/find", "/many/nodes")


class Controllers:
    """The stand-ins of all three."""

    def __init__(self) -> None:
        self.nanny, self.cms, self.walle = FakeNanny(), FakeCms(), FakeWalle()
        self.nanny.roll_out(7, failed=1, message="batch 4 waits")

    @asynccontextmanager
    async def serving(self, secured: Secured | None = None) -> AsyncIterator[dict[str, str]]:
        """Addresses of the servers."""

        def own(name: str) -> Security | None:
            return secured.security(audit_log=str(secured.directory / f"{name}.jsonl")) if secured else None

        async with (
            serving(self.nanny.methods(), own("nanny")) as nanny,
            serving(self.cms.methods(), own("cms")) as cms,
            serving(self.walle.methods(), own("walle")) as walle,
        ):
            yield {"nanny": nanny, "cms": cms, "walle": walle}

    def orders(self) -> list[tuple[str, Any]]:
        """What came to any of them."""
        return [*self.nanny.orders, *self.cms.orders, *self.walle.orders]


@asynccontextmanager
async def whole_cloud() -> AsyncIterator[tuple[Cloud, FakeNanny]]:
    """With a stand-in of each controller; a roll-out is under way."""
    controllers = Controllers()
    async with controllers.serving() as at, cloud(**at) as made:
        yield made, controllers.nanny


@asynccontextmanager
async def console_of(hq: str, **controllers: str) -> AsyncIterator[Browser]:
    """A browser before a console of these servers."""
    async with (
        console_over(lambda: servers_at(hq, None, None, **controllers)) as console,
        browser_at(console.base) as browser,
    ):
        yield browser


def test_every_address_is_known_here() -> None:
    known = routes(servers_at("127.0.0.1:1"), is_open=True)
    assert {one.pattern for one in known if one.method == "GET"} == PAGES.keys()
    assert {one.pattern for one in known if one.method == "POST"} - _SIGNING == ORDERS.keys()
    assert {f"{one.method} {one.pattern}" for one in known} == requests.CONSOLE.keys()  # rows of the matrix


async def test_every_page_shows_what_is_there_and_hostile_texts_stay_texts() -> None:
    async with whole_cloud() as (at, _):
        told = ""
        for path, wanted in PAGES.values():
            page = await at.browser.get(path)
            assert page.status_code == 200, path
            assert HOSTILE not in page.text, path
            assert wanted in page.text, path
            told += page.text
        for path in STATES:
            assert HOSTILE not in (await at.browser.get(path)).text, path
        assert HOSTILE in html.unescape(told)


@pytest.mark.long
async def test_every_page_of_a_console_whose_servers_are_all_silent_says_so() -> None:
    nowhere = "127.0.0.1:1"
    async with console_of(nowhere, nanny=nowhere, cms=nowhere, walle=nowhere) as browser:
        # At once: each waits for what does not answer.
        pages = await asyncio.gather(*(browser.get(path) for path, _ in PAGES.values()))
        for (pattern, (path, _)), page in zip(PAGES.items(), pages, strict=True):
            assert page.status_code == 200, path
            said = re.search("does not answer|has not answered|cannot be asked|did not answer", page.text)
            assert (said is not None) == (pattern not in _SIGNING), path


async def test_every_page_of_a_console_without_controllers_is_shown_or_says_which_flag_it_needs() -> None:
    async with served(None) as hq, console_of(hq.addresses.grpc) as browser:
        for path, _ in PAGES.values():
            page = await browser.get(path)
            is_of_registry = path.split("?")[0] == "/" or path.startswith(_OF_REGISTRY)
            if path == "/signin" or (is_of_registry and "snapshots" not in path):
                assert "Traceback" not in page.text, path
                assert page.status_code in (200, 404), path  # HQ is empty
            else:
                assert re.search(r"--(nanny|cms|walle) HOST:PORT", page.text), path


async def test_an_empty_registry_says_what_to_do_next() -> None:
    async with served(None) as hq, console_of(hq.addresses.grpc) as browser:
        for path, wanted in (("/", "hqctl apply"), ("/services", "hqctl apply"), ("/events", "Nothing expired")):
            assert wanted in (await browser.get(path)).text, path


@pytest.mark.parametrize("token", ["", "reader/anna"])
async def test_every_order_sent_by_hand_without_the_right_does_nothing(tmp_path: Path, token: str) -> None:
    files, controllers = Secured(tmp_path), Controllers()
    async with (
        controllers.serving(files) as at,
        secured_console(files, token, is_open=False, **at) as (browser, _),
    ):
        for path, form in (one for listed in ORDERS.values() for one in listed):
            assert (await browser.post(path, form)).status_code in (303, 403), path  # without the form's token
            answer = await browser.submit(path, form)
            if token:
                assert "Nothing was done" in await browser.flash(), path
            else:
                assert answer.headers["location"].startswith("/signin"), path
        assert controllers.orders() == []


async def test_every_order_reaches_its_server_where_nobody_asks_for_rights() -> None:
    controllers = Controllers()
    async with controllers.serving() as at, cloud(**at) as made:
        for path, form in (one for listed in ORDERS.values() for one in listed):
            before = len(controllers.orders())
            answer = await made.browser.submit(path, form)
            assert answer.status_code == 303, path
            assert "Nothing was done" not in await made.browser.flash(), path
            is_hqs = path.startswith(("/nodes/", "/guard/", "/many/nodes"))
            assert len(controllers.orders()) == before + (not is_hqs), path


async def test_planned_work_names_who_holds_what_and_which_services_have_no_room() -> None:
    controllers = Controllers()
    controllers.walle.scenario.host[1].task[0].id = "reboot-1"  # the CMS knows this one, and why it waits
    async with controllers.serving() as at, cloud(**at) as made:
        page = re.sub(r"<[^>]+>", "", (await made.browser.get("/scenarios/s1-upgrade")).text)
        assert "bob holds 1 instance for power-off: rack-7" in page
        assert "web-floor may not fall below 3: 3 of 4 available, and this needs 1" in page
        controllers.cms.tasks.clear()  # another CMS than Wall-E's: its words are all there is
        page = (await made.browser.get("/scenarios/s1-upgrade")).text
        assert "bob holds 1 instance" not in page
        assert "web has no room" in page


async def test_a_service_says_at_its_head_why_instances_are_not_ready() -> None:
    async with whole_cloud() as (at, _):
        page = (await at.browser.get("/services/cart")).text
        assert "3 instances: readiness check failed: GET /ping answered 503. On node-1, node-2, node-3." in page
        assert "Not ready:" not in (await at.browser.get("/services/web")).text


# What a page may say only of what it could look at.
_KNOWN: Final = (
    r"All is well|>0</b> of 0|>0</span>|\b0 of 0\b|No \w+ yet|Nothing is called|Nothing is under work|Nothing to act on"
    r"|would not trip|Nothing was counted|Nothing happened|No expiries|No instance|Nothing expired|There is no such"
)


@pytest.mark.long
async def test_every_page_of_a_token_without_rights_says_which_right_is_missing_and_nothing_else(
    tmp_path: Path,
) -> None:
    files, controllers = Secured(tmp_path), Controllers()
    async with (
        controllers.serving(files) as at,
        secured_console(files, "nobody", is_open=False, **at) as (browser, _),
    ):
        for path, _ in PAGES.values():
            page = (await browser.get(path)).text
            if path != "/signin":
                assert re.search("nobody is not authorized to .*: requires the role", page), path
                assert not re.findall(_KNOWN, page), path
        first = (await browser.get("/")).text
        assert "You may not read what HQ holds" in first
        assert "not shown with your rights" in first
