"""A small cloud in an HQ of the test's own, and a console over it, in the test's loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx

from console.backends.controllers import CmsClient, NannyClient, WalleClient
from console.backends.history import HistoryClient
from console.backends.registry import RegistryClient
from console.backends.remote import Remote
from console.backends.servers import Servers
from console.server import ConsoleServer
from hqclient import Client, CredentialFiles, Credentials
from hqpb.v1 import instance_pb2 as ipb
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from tests.support.secured import Secured, served

HOSTILE = '<img src=x onerror=alert(1)> & "quotes" {{7*7}} </script>'
KEY = b"k" * 32


def instance(id_: str, service: str, node: str, revisions: Sequence[str] = ("r1",), **labels: str) -> ipb.Instance:
    """The last revision is wanted READY, those before it INSTALLED."""
    made = ipb.Instance()
    made.meta.id, made.meta.service_id, made.spec.node_name = id_, service, node
    made.meta.labels.update(labels)
    made.spec.allocation.cpu_millicores, made.spec.allocation.memory_bytes = 1_500, 2 << 30
    made.spec.allocation.port.add(name="http", number=8080)
    for revision in revisions:
        wanted = revision == revisions[-1]
        made.spec.revision.add(id=revision, target=2 if wanted else 1)
    return made


async def report(client: Client, one: ipb.Instance, *, ready: bool, reason: str = "", message: str = "") -> None:
    """Say of every revision what an agent would; only the last can be ready."""
    for revision in one.spec.revision:
        begun = await client.begin_reporting(one.meta.id, revision.id, node=one.spec.node_name)
        is_wanted = revision.target == ipb.REVISION_TARGET_READY
        status = ipb.RevisionStatus(id=revision.id, incarnation=begun.incarnation, sequence=1)
        status.installed.status = ipb.CONDITION_STATUS_TRUE
        status.ready.status = ipb.CONDITION_STATUS_TRUE if ready and is_wanted else ipb.CONDITION_STATUS_FALSE
        status.ready.reason = reason or ("Ready" if ready else "ReadinessCheckFailed")
        status.ready.message = message
        await client.report(one.meta.id, status, uid=begun.uid, node=one.spec.node_name)


async def fill(client: Client) -> None:
    """A healthy service, a broken one, a silent one, and one whose texts are an attack."""
    healthy = [instance(f"web-{n}", "web", f"node-{n}", ("r1", "r2"), engine="instancectl") for n in range(4)]
    broken = [instance(f"cart-{n}", "cart", f"node-{n}") for n in range(4)]
    silent = [instance(f"mail-{n}", "mail", f"node-{n}") for n in range(2)]
    hostile = [instance("evil-1", "evil", "node-0", note=HOSTILE)]
    await client.apply([*healthy, *broken, *silent, *hostile])
    for one in healthy:
        await report(client, one, ready=True)
    for number, one in enumerate(broken):
        await report(client, one, ready=number == 0, message="GET /ping answered 503")
    await report(client, hostile[0], ready=False, reason="Broken", message=HOSTILE)


@dataclass
class Browser:
    """A browser without a screen: cookies, forms with their tokens. Redirects are not followed."""

    base: str
    http: httpx.AsyncClient
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """A page."""
        return self._kept(await self.http.get(self.base + path, headers={**self._cookie(), **headers}))

    async def post(self, path: str, form: Mapping[str, str | Sequence[str]], **headers: str) -> httpx.Response:
        """A form exactly as given; a list is one field with many values."""
        sent = {**self._cookie(), "content-type": "application/x-www-form-urlencoded", **headers}
        return self._kept(await self.http.post(self.base + path, content=urlencode(form, doseq=True), headers=sent))

    async def submit(self, path: str, form: Mapping[str, str | Sequence[str]], **headers: str) -> httpx.Response:
        """A form with the token that a page of ours would give it."""
        page = await self.get("/signin")
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
        assert found is not None
        return await self.post(path, {"form_token": found[1], **form}, **headers)

    async def flash(self) -> str:
        """What the next page says of the action before."""
        page = await self.get("/signin")
        found = re.search(r'<p class="flash[^>]*>.*?</span>(.*?)</p>', page.text)
        return found[1].strip() if found else ""

    def _cookie(self) -> dict[str, str]:
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _kept(self, answer: httpx.Response) -> httpx.Response:
        for line in answer.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0]
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return answer


class RunningConsole:
    """A console that can be stopped and started again at its address."""

    def __init__(self, make: Callable[[], Servers], *, is_open: bool = True, security: Security | None = None) -> None:
        """`security`: TLS of its own."""
        self._make, self._is_open = make, is_open
        self._address, self._scheme = "127.0.0.1:0", "https" if security else "http"
        self.surroundings = ServerContext(Limits(), SystemClock(), RequestIds("test"), security)

    @property
    def base(self) -> str:
        """How pages begin."""
        return f"{self._scheme}://{self._address}"

    async def start(self) -> None:
        """Return when it listens."""
        server = ConsoleServer(self._make(), self.surroundings, self._address, KEY, grace_s=0.2, is_open=self._is_open)
        self._server, self._serving = server, asyncio.create_task(server.serve())
        async with asyncio.timeout(20):
            await asyncio.wait((self._serving, server.listening), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        self._address = (await server.listening).http
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Return when it is gone."""
        self._server.stop()
        await asyncio.gather(self._serving, return_exceptions=True)


@asynccontextmanager
async def console_over(
    make: Callable[[], Servers], *, is_open: bool = True, security: Security | None = None
) -> AsyncIterator[RunningConsole]:
    """A console over these servers."""
    console = RunningConsole(make, is_open=is_open, security=security)
    await console.start()
    try:
        yield console
    finally:
        await console.stop()


@asynccontextmanager
async def browser_at(base: str) -> AsyncIterator[Browser]:
    """One browser."""
    async with httpx.AsyncClient(trust_env=False, timeout=20, verify=False) as http:
        yield Browser(base, http)


@dataclass
class Cloud:
    """HQ with some instances, a console over it, and a browser."""

    console: RunningConsole
    client: Client
    browser: Browser

    @property
    def base(self) -> str:
        """How pages begin."""
        return self.console.base


def servers_at(
    hq: str, credentials: Credentials | None = None, places: Mapping[str, str] | None = None, **controllers: str
) -> Servers:
    """Clients of all of these addresses; `controllers`: by their names in Servers."""
    registry = RegistryClient([hq], places or {}, credentials)
    asked = {
        name: client(Remote(title, [controllers[name]], credentials))
        for name, (client, title) in _CLIENTS.items()
        if name in controllers
    }
    return Servers(registry, **asked)


_CLIENTS: dict[str, tuple[Any, str]] = {
    "nanny": (NannyClient, "Nanny"),
    "cms": (CmsClient, "CMS"),
    "walle": (WalleClient, "Wall-E"),
    "recorder": (HistoryClient, "The recorder"),
}


@asynccontextmanager
async def cloud(**controllers: str) -> AsyncIterator[Cloud]:
    """Without security. `controllers`: their addresses, by their names in Servers."""
    async with served(None) as hq, Client([hq.addresses.grpc]) as client:
        await fill(client)
        async with (
            console_over(lambda: servers_at(hq.addresses.grpc, None, None, **controllers)) as console,
            browser_at(console.base) as browser,
        ):
            yield Cloud(console, client, browser)


@asynccontextmanager
async def secured_console(
    files: Secured, token: str = "", *, is_open: bool = True, **controllers: str
) -> AsyncIterator[tuple[Browser, str]]:
    """A browser, signed in as `token` says, before a console over an HQ that wants tokens; and HQ's address."""
    credentials = Credentials(CredentialFiles(str(files.authority.cert), "", "", ""))
    async with (
        served(files.security()) as hq,
        console_over(
            lambda: servers_at(hq.addresses.grpc, credentials, None, **controllers), is_open=is_open
        ) as console,
        browser_at(console.base) as browser,
    ):
        if token:
            await browser.submit("/signin", {"token": files.issuer.token(token), "to": "/"})
        yield browser, hq.addresses.grpc


@dataclass
class WithController:
    """A cloud with the stand-in of a controller."""

    cloud: Cloud

    @property
    def browser(self) -> Browser:
        return self.cloud.browser


async def check_absence(path: str, name: str, title: str) -> None:
    """A page without a controller names the flag that it needs; with a silent one it says so, and the rest goes on."""
    async with cloud() as at:
        assert f"--{name} HOST:PORT" in (await at.browser.get(path)).text
    async with cloud(**{name: "127.0.0.1:1"}) as at:
        silent = f"{title} (does not answer|has not answered since)"  # the latter if a refusal takes its time
        assert re.search(silent, (await at.browser.get(path)).text)
        first = (await at.browser.get("/")).text
        assert re.search(silent, first)
        assert "cart: 1 of 4 instances ready" in first
