"""Who gets in, which forms count, and what a browser is told about framing, scripts and hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2

from console.backends.asking import TOKEN, Trouble
from console.backends.remote import Remote
from console.pages.editing import MOST_EDITED
from hqclient import Client, CredentialFiles, Credentials
from tests.console.scene import Browser, Cloud, browser_at, cloud, console_over, instance, secured_console, servers_at
from tests.support.secured import Secured, served


@pytest.fixture
async def at() -> AsyncIterator[Cloud]:
    async with cloud() as made:
        yield made


@asynccontextmanager
async def secured(folder: Path) -> AsyncIterator[tuple[Secured, Browser]]:
    """A console over an HQ that wants tokens."""
    files = Secured(folder)
    async with secured_console(files) as (browser, hq):
        await _fill(hq, files)
        yield files, browser


async def _fill(address: str, files: Secured) -> None:
    """One instance on each of two nodes, by an admin."""
    token = files.directory / "admin.token"
    token.write_text(files.issuer.token("admin"))
    credentials = Credentials(CredentialFiles(str(files.authority.cert), "", "", str(token)))
    async with Client([address], credentials=credentials) as client:
        await client.apply([instance("web-0", "web", "node-0"), instance("web-1", "web", "rack1-a")])


async def test_every_answer_forbids_framing_and_foreign_scripts(at: Cloud) -> None:
    for path in ("/", "/nothing", "/static/console.js", "/find?q=web"):
        headers = (await at.browser.get(path)).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost.evil.example:80", ""])
async def test_a_host_of_another_name_is_not_answered(at: Cloud, host: str) -> None:
    answer = await at.browser.get("/", host=host)
    assert answer.status_code in (400, 421)
    assert "cart" not in answer.text


async def test_localhost_is_a_name_of_the_loopback(at: Cloud) -> None:
    port = at.base.rpartition(":")[2]
    assert (await at.browser.get("/", host=f"localhost:{port}")).status_code == 200


FORM = {"hours": "2", "reason": "x", "cluster": "test"}


async def test_a_form_without_its_token_does_nothing(at: Cloud) -> None:
    for form in (FORM, {**FORM, "form_token": ""}, {**FORM, "form_token": "0" * 64}):
        assert (await at.browser.post("/nodes/node-0/suspend", form)).status_code == 403
    assert not (await at.client.admin.list_suspensions()).suspensions


async def test_a_form_token_of_another_browser_does_nothing(at: Cloud) -> None:
    async with browser_at(at.base) as other:
        page = await other.get("/signin")
        token = page.text.split('name="form_token" value="')[1].partition('"')[0]
    await at.browser.get("/")
    answer = await at.browser.post("/nodes/node-0/suspend", {**FORM, "form_token": token})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_form_of_another_site_does_nothing(at: Cloud, headers: dict[str, str]) -> None:
    answer = await at.browser.submit("/nodes/node-0/suspend", FORM, **headers)
    assert answer.status_code == 403
    assert not (await at.client.admin.list_suspensions()).suspensions


async def test_a_form_that_is_too_long_is_refused(at: Cloud) -> None:
    answer = await at.browser.submit("/nodes/node-0/suspend", {**FORM, "reason": "x" * 1_100_000})
    assert answer.status_code == 413


async def test_a_description_of_the_size_that_the_page_names_arrives(at: Cloud) -> None:
    """As a form it has three characters for some of its bytes."""
    lines = "# %&\n" * (MOST_EDITED // 5)
    answer = await at.browser.submit("/services/web/edit", {"step": "compare", "content": lines})
    assert answer.status_code != 413


async def test_live_fragments_carry_no_form_token(at: Cloud) -> None:
    for path in ("/nodes", "/nodes/node-0", "/"):
        page = (await at.browser.get(path)).text
        for fragment in page.split('data-live="')[1:]:
            inside, depth = fragment, 1
            while depth and inside:
                opened, closed = inside.find("<div"), inside.find("</div>")
                depth += 1 if 0 <= opened < closed else -1
                inside = inside[(opened if 0 <= opened < closed else closed) + 4 :]
            assert "form_token" not in fragment[: len(fragment) - len(inside)]


async def test_a_browser_that_is_not_signed_in_is_sent_to_sign_in_and_comes_back(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        answer = await browser.get("/services?q=web")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/signin?to=%2Fservices%3Fq%3Dweb"
        token = files.issuer.token("operator")
        answer = await browser.submit("/signin", {"token": token, "to": "/services?q=web"})
        assert answer.headers["location"] == "/services?q=web"
        assert (await browser.get("/services")).status_code == 200
        cookie = next(line for line in answer.headers.get_list("set-cookie") if line.startswith("__Host-session="))
        assert token not in cookie
        assert all(part in cookie for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="))


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", ""])
async def test_signing_in_leads_to_pages_of_ours_only(tmp_path: Path, to: str) -> None:
    async with secured(tmp_path) as (files, browser):
        answer = await browser.submit("/signin", {"token": files.issuer.token("operator"), "to": to})
        assert answer.headers["location"] == "/"


@pytest.mark.parametrize("kind", ["nonsense", "expired", "foreign", "too long"])
async def test_a_bad_token_is_not_kept(tmp_path: Path, kind: str) -> None:
    async with secured(tmp_path) as (files, browser):
        tokens = {
            "nonsense": "not a token at all",
            "expired": files.issuer.token("operator", good_for_s=-10),
            "foreign": files.issuer.token("operator", aud="elsewhere"),
            "too long": files.issuer.token("operator", noise=[str(n * 7919) for n in range(3_000)]),
        }
        answer = await browser.submit("/signin", {"token": tokens[kind], "to": "/"})
        assert answer.headers["location"].startswith("/signin")
        assert "__Host-session" not in browser.cookies


@pytest.mark.long
async def test_signing_out_forgets_the_token_here(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("operator"), "to": "/"})
        await browser.submit("/signout", {})
        assert (await browser.get("/services")).status_code == 303


async def test_a_reader_sees_no_button_of_operators_and_a_forged_order_fails(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("reader/anna"), "to": "/"})
        page = await browser.get("/nodes/node-0")
        assert page.status_code == 200
        assert "Planned work…" not in page.text
        assert "Release…" not in (await browser.get("/nodes")).text
        await browser.submit("/nodes/node-0/suspend", FORM)
        assert "Nothing was done" in await browser.flash()
        await browser.submit("/guard/HQ/release", {"reason": "x"})
        assert "Nothing was done" in await browser.flash()


async def test_an_operator_sees_the_button_and_the_order_is_carried_out(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("operator"), "to": "/"})
        assert "Planned work…" in (await browser.get("/nodes/node-0")).text
        await browser.submit("/nodes/node-0/suspend", FORM)
        assert "Nothing on node-0 expires" in await browser.flash()
        assert "by operator" in (await browser.get("/nodes/node-0")).text


async def test_an_admin_who_is_no_operator_sees_no_button_of_operators(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("admin"), "to": "/"})
        assert "Release…" not in (await browser.get("/nodes")).text


async def test_an_operator_of_a_rack_is_offered_its_nodes_only(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("rack-operator"), "to": "/"})
        assert "Planned work…" in (await browser.get("/nodes/rack1-a")).text
        assert "Planned work…" not in (await browser.get("/nodes/node-0")).text
        assert "Release…" not in (await browser.get("/nodes")).text


async def test_a_console_that_others_reach_wants_a_token_even_where_hq_does_not(tmp_path: Path) -> None:
    async with served(None) as hq:
        console_at = console_over(lambda: servers_at(hq.addresses.grpc), is_open=False)
        async with console_at as console, browser_at(console.base) as browser:
            assert (await browser.get("/")).headers["location"].startswith("/signin")
            await browser.submit("/signin", {"token": Secured(tmp_path).issuer.token("ann"), "to": "/"})
            assert "it has no authentication" in await browser.flash()


async def test_what_a_reader_may_not_see_is_named_beside_what_is_well(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("reader/anna"), "to": "/"})
        page = (await browser.get("/")).text
        assert "2 instances ready" in page
        assert "HQ: not shown with your rights" in page
        assert "reader/anna is not authorized to inspect" in page
        assert "All is well" not in page
        assert "No expiries, no recoveries" not in (await browser.get("/services/web")).text


async def test_a_reader_of_some_services_is_told_that_they_open_by_name(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, browser):
        await browser.submit("/signin", {"token": files.issuer.token("web-reader"), "to": "/"})
        page = (await browser.get("/")).text
        assert "covers more than the granted scope" in page
        assert "opens by its name" in page
        assert (await browser.get("/find?q=web")).headers["location"] == "/services/web"
        assert "web-0" in (await browser.get("/services/web")).text
        assert "is not known" in (await browser.get("/find?q=mail")).text


@pytest.mark.parametrize("audience", ["hq", "console", ["console", "cms"]])
async def test_a_token_that_does_not_list_the_console_and_hq_does_not_sign_in(tmp_path: Path, audience: Any) -> None:
    async with secured(tmp_path) as (files, browser):
        token = files.issuer.token("operator", aud=audience)
        answer = await browser.submit("/signin", {"token": token, "to": "/"})
        assert answer.headers["location"].startswith("/signin")
        assert "hqctl token sign --audience console,hq" in (await browser.get("/signin")).text


async def test_the_console_shows_a_token_only_to_servers_that_it_lists(tmp_path: Path) -> None:
    files, seen = Secured(tmp_path), []

    async def called(_request: Any, context: Any) -> bytes:
        seen.append(dict(context.invocation_metadata() or ()).get("authorization"))
        return b""

    handler: Any = grpc.unary_unary_rpc_method_handler(called)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("cms.v1.X", {"Get": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    cms = Remote("CMS", [f"127.0.0.1:{port}"], None, frozenset({"cms"}))
    try:
        TOKEN.set(files.issuer.token("operator", aud=["console", "hq"]))
        refused = await cms.read("/cms.v1.X/Get", struct_pb2.Struct(), bytes)
        assert isinstance(refused, Trouble)
        assert (refused.kind, seen) == ("denied", [])
        assert "hqctl token sign --audience console,cms" in refused.text
        TOKEN.set(mine := files.issuer.token("operator", aud=["console", "hq", "cms"]))
        assert await cms.read("/cms.v1.X/Get", struct_pb2.Struct(), bytes) == b""
        assert seen == [f"Bearer {mine}"]
    finally:
        await cms.close()
        await server.stop(0)
