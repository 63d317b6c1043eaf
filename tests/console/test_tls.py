"""Signing in over the console's own TLS, where browsers speak HTTP/2 and send each cookie in a header of its own."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from hqclient import CredentialFiles, Credentials
from serving.auth.security import security_of
from serving.clock import SystemClock
from serving.h2 import hpack, state
from serving.h2.machine import Http2Machine
from serving.h2.state import Http2Settings
from serving.head import Head
from tests.console.chromium import chromium, needs_chromium, screen
from tests.console.scene import RunningConsole, console_over, servers_at
from tests.support.secured import Secured, served

NO_CALLERS = dict.fromkeys(("jwks", "issuer", "policy", "audit_log"), "")


@asynccontextmanager
async def secured(folder: Path) -> AsyncIterator[tuple[Secured, RunningConsole]]:
    """A console with TLS over an HQ that wants tokens."""
    files = Secured(folder)
    own = security_of(files.given(**NO_CALLERS), SystemClock(), None)
    async with served(files.security()) as hq:
        credentials = Credentials(CredentialFiles(str(files.authority.cert), "", "", ""))
        async with console_over(lambda: servers_at(hq.addresses.grpc, credentials), security=own) as console:
            yield files, console


class Http2Browser:
    """One connection of a browser; it keeps cookies, and sends each in a header of its own (RFC 9113, 8.2.3)."""

    def __init__(self, base: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._base, self._reader, self._writer = base, reader, writer
        self._machine = Http2Machine(Http2Settings(), is_client=True)
        self._machine.outgoing.room = 1 << 20
        self.cookies: dict[bytes, bytes] = {}

    async def get(self, path: str) -> tuple[int, dict[bytes, bytes], str]:
        """A page: its status, headers and body."""
        return await self._ask(b"GET", path, [], b"")

    async def submit(self, path: str, form: dict[str, str]) -> tuple[int, dict[bytes, bytes], str]:
        """A form with the token that its page gave it."""
        token = re.search(r'name="form_token" value="([0-9a-f]+)"', (await self.get("/signin"))[2])
        assert token is not None
        body = urlencode({"form_token": token[1], **form}).encode()
        more = [(b"content-type", b"application/x-www-form-urlencoded"), (b"origin", self._base.encode())]
        return await self._ask(b"POST", path, more, body)

    async def _ask(
        self, method: bytes, path: str, more: list[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, dict[bytes, bytes], str]:
        head = [(b":method", method), (b":scheme", b"https"), (b":authority", self._base.partition("://")[2].encode())]
        crumbs = [(b"cookie", name + b"=" + value) for name, value in self.cookies.items()]
        out = self._machine.outgoing
        stream = self._machine.open(hpack.encode([*head, (b":path", path.encode()), *more, *crumbs]), end=not body)
        if body:
            out.data(stream, body, end=True)
        answer: Head | None = None
        got, is_over = b"", False
        while not is_over:
            self._writer.write(b"".join(out.take()))
            self._machine.receive(await self._reader.read(65_536))
            for kind, _, what, end in self._machine.events():
                assert kind not in (state.FAILED, state.RESET), what
                if kind == state.HEADERS:
                    answer = what
                elif kind == state.DATA:
                    got += what
                    self._machine.acknowledge_bytes(stream, len(what))
                is_over = is_over or end
        assert answer is not None
        self._keep([value for name, value in answer.fields if name == b"set-cookie"])
        return answer.status, answer.named, got.decode()

    def _keep(self, lines: list[bytes]) -> None:
        for line in lines:
            name, _, value = line.partition(b";")[0].partition(b"=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]


async def test_a_browser_that_sends_each_cookie_by_itself_signs_in(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, console):
        context = ssl.create_default_context(cafile=str(files.authority.cert))
        context.set_alpn_protocols(["h2"])
        host, _, port = console.base.partition("://")[2].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        browser = Http2Browser(console.base, reader, writer)
        assert (await browser.get("/services"))[0] == 303, "it is sent to the page where to sign in"
        status, headers, _ = await browser.submit("/signin", {"token": files.issuer.token("operator"), "to": "/nodes"})
        assert (status, headers[b"location"]) == (303, b"/nodes")
        assert len(browser.cookies) >= 2
        status, _, page = await browser.get("/nodes")
        assert (status, "operator" in page) == (200, True)
        writer.close()


@needs_chromium
@pytest.mark.long
async def test_chromium_signs_in_over_tls(tmp_path: Path) -> None:
    async with (
        secured(tmp_path) as (files, console),
        chromium() as browser,
        screen(browser, console.base, ignore_https_errors=True) as shown,
    ):
        await shown.open("/services")
        await shown.page.get_by_label("Token").fill(files.issuer.token("operator"))
        await shown.page.get_by_role("button", name="Sign in").click()
        await shown.page.wait_for_url(console.base + "/services")
        await shown.see("operator")
        await shown.page.reload()
        await shown.see("operator")
