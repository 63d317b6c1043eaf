"""What stands before the servers: gateways, the console, a host agent; in this event loop, over those servers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import dns.asyncquery
import dns.message
import dns.rcode
import grpc
import httpx

from console.backends.controllers import CmsClient, NannyClient, WalleClient
from console.backends.registry import RegistryClient
from console.backends.remote import Remote
from console.backends.servers import Servers as ConsoleServers
from console.pages.routes import routes
from console.server import ConsoleServer
from gateways.consul.answers import ConsulAnswers, ConsulSettings
from gateways.consul.api import ConsulApi
from gateways.consul.indexes import ConsulIndexes
from gateways.dns import sockets
from gateways.dns.responder import Responder
from gateways.dns.zone import Zone, ZoneSettings
from gateways.process import DiscoveryGateway
from gateways.xds.ads import PATH, PATHS, Ads
from gateways.xds.delta import DeltaSubscriptions
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.resources import Resources
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.discovery import Discovery
from instancectl.hostagent.agent import HostAgent
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.rights.rules import Rule
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from tests.console.scene import Browser
from tests.support.authority.servers import ANYWHERE, Guarded, Rules, Servers, noted
from tests.support.sample_instances import eventually
from xdspb.v1 import xds_pb2

_PAGES: Final = Rule("as what it shows: with the visitor's own token")
_NOBODY: Final = Rule("everybody: DNS has no identities")
_USER: Final = Rule("the user at the socket")
_SERVICES: Final = ("mail", "web")


class Fronts:
    """Starts them one after the other; they end with the stack.

    Attributes:
        dns: where DNS is answered.
        socket: of the host agent of n1.
        visitors: browsers at the console, by the token that they signed in with.
    """

    def __init__(self, servers: Servers, folder: Path, stack: AsyncExitStack) -> None:
        self._servers, self._folder, self._stack = servers, folder, stack
        self.dns = ("", 0)
        self.socket = folder / "agent.sock"
        self.visitors: dict[str, Browser] = {}
        self._console, self._http = "", httpx.AsyncClient(verify=False, trust_env=False, timeout=20)

    def _token(self, subject: str) -> CredentialFiles:
        """For a client of the servers."""
        file = self._folder / f"token-{subject.replace('/', '-')}"
        file.write_text(self._servers.files.issuer.token(subject))
        return CredentialFiles(str(self._servers.files.authority.cert), "", "", str(file))

    async def gateways(self) -> None:
        """Consul, xDS and DNS, each over HQ."""
        for kind in ("consul", "xds"):
            with noted() as rules:
                gateway = self._gateway(kind)
                if kind == "consul":
                    listening = gateway.listen(ANYWHERE, site=self._consul(gateway))
                else:
                    resources = Resources(gateway.picture, gateway.addressing, 1)
                    listening = gateway.listen(ANYWHERE, Ads(gateway.picture, resources).methods())
            await self._serve(gateway, gateway.serve())
            self._servers.add(kind, (await listening).http, rules)
        gateway = self._gateway("dns", secured=False)
        udp_socket, tcp_socket = sockets.bind_udp_and_tcp("127.0.0.1:0")
        tcp_socket.close()
        zone = Zone(ZoneSettings((b"hq", b"internal"), 1, ""), gateway.picture, gateway.addressing, 1)
        responder = Responder(zone, random.Random(1), 1_232)
        gateway.picture.listen(responder.on_services_changed)
        udp = sockets.Udp(udp_socket, responder, sockets.Rate(0, gateway.clock))
        gateway.listen(ANYWHERE)
        udp.open()
        self._stack.callback(udp.close)
        await self._serve(gateway, gateway.serve())
        self.dns = udp_socket.getsockname()[:2]
        self._servers.all["dns"] = Guarded("dns", "", {"/dns": (_NOBODY, None)})

    def _gateway(self, kind: str, *, secured: bool = True) -> DiscoveryGateway:
        addresses = [self._servers.all["hq"].http]
        discovery = Discovery(addresses, credentials=Credentials(self._token("reader")), rng=random.Random(1))
        security = self._servers.security() if secured else None
        return DiscoveryGateway(kind, discovery, (), SystemClock(), Limits(), security, 0.1)

    def _consul(self, gateway: DiscoveryGateway) -> Any:
        indexes = ConsulIndexes(gateway.picture, gateway.clock)
        answers = ConsulAnswers(ConsulSettings("", ("http",), "0"), gateway.picture, indexes)
        return ConsulApi(gateway.picture, indexes, answers, gateway.context, random.Random(1)).answer

    async def _serve(self, gateway: DiscoveryGateway, work: Any) -> None:
        task = asyncio.create_task(work)
        self._stack.push_async_callback(_ended, task)
        await eventually(lambda: gateway.picture.coverage.is_known, 20.0, "the gateway knows the instances")

    async def console(self) -> None:
        """Over all servers; its pages are its methods."""
        at, credentials = self._servers.all, Credentials(CredentialFiles(str(self._servers.files.authority.cert)))
        parts: dict[str, Any] = {
            name: make(Remote(name, [at[name].http], credentials, frozenset({name})))
            for name, make in (("nanny", NannyClient), ("cms", CmsClient), ("walle", WalleClient))
        }
        backends = ConsoleServers(RegistryClient([at["hq"].http], {}, credentials), **parts)
        security = self._servers.files.security(jwks="", policy="", issuer="", audit_log="")
        shared = ServerContext(Limits(), SystemClock(), RequestIds("console"), security)
        server = ConsoleServer(backends, shared, "127.0.0.1:0", b"k" * 32, grace_s=0.1, is_open=False)
        task = asyncio.create_task(server.serve())
        self._stack.push_async_callback(_ended, task)
        self._console = f"https://{(await server.listening).http}"
        self._stack.push_async_callback(self._http.aclose)
        pages: Rules = {
            f"console {one.method} {one.pattern}": (_PAGES, None) for one in routes(backends, is_open=False)
        }
        self._servers.all["console"] = Guarded("console", "", pages)

    async def host_agent(self) -> None:
        """The host agent of node n1, with the identity of its agent."""
        with noted() as rules:
            agent = HostAgent("n1", [self._servers.all["hq"].http], self._token("agent/n1"), self.socket, [])
            task = asyncio.create_task(agent.run(asyncio.Event()))
            self._stack.push_async_callback(_ended, task)
            await eventually(self.socket.exists, 20.0, "the host agent listens")
        self._agent = agent
        # Pages, such as /metrics, are for whoever may connect.
        calls = {path: one for path, one in rules.items() if not (path.startswith("/") or one[0].is_open)}
        kept: Rules = {path: (_USER, reach) for path, (_, reach) in calls.items()}
        self._servers.all["host-agent"] = Guarded("host-agent", "", kept)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def ask_xds(self, address: str, path: str, proof: tuple[tuple[str, str], ...]) -> tuple[str, str]:
        """All clusters or listeners, or the endpoints or routes of all services, that a caller is shown."""
        channel = Channel(address, self._servers.tls)
        form, only = PATHS.get(path, PATHS[PATH])
        kind = only or ResourceType.CLUSTER
        names = () if kind is ResourceType.CLUSTER else _SERVICES
        asked: xds_pb2.DiscoveryRequest | xds_pb2.DeltaDiscoveryRequest
        if form is DeltaSubscriptions:
            asked = xds_pb2.DeltaDiscoveryRequest(type_url=kind.value, resource_names_subscribe=names)
        else:
            asked = xds_pb2.DiscoveryRequest(type_url=kind.value, resource_names=names)
        call = channel.stream(f"/{path}", asked.SerializeToString(), proof, 20.0)
        try:
            # None: nothing of what was asked for is within reach, and endpoints have no answer for that.
            answer = await anext(aiter(call), b"")
            if form is DeltaSubscriptions:  # names that do not exist for a caller are its own words
                response = xds_pb2.DeltaDiscoveryResponse.FromString(answer)
                response.ClearField("removed_resources")
                answer = response.SerializeToString()
            return "OK", answer.decode("latin-1")
        except CallFailed as error:
            return next(one.name for one in grpc.StatusCode if one.value[0] == error.code), error.message
        finally:
            call.leave()
            await channel.close()

    async def ask_dns(self, name: str) -> tuple[str, str]:
        """Whether the name is answered."""
        query = dns.message.make_query(name, "SRV")
        answer = await dns.asyncquery.udp(query, self.dns[0], timeout=20, port=self.dns[1])
        code = dns.rcode.to_text(answer.rcode())
        return ("OK" if code == "NOERROR" else "NOT_FOUND"), code

    async def ask_console(self, verb: str, path: str, form: Mapping[str, str], token: str) -> tuple[str, str]:
        """A page of the console, or a form, as who signed in with this token; empty: nobody did."""
        browser = self.visitors.get(token)
        if browser is None:
            browser = self.visitors[token] = Browser(self._console, self._http)
            if token:
                await browser.submit("/signin", {"token": token, "to": "/"})
        answer = await (browser.submit(path, form) if verb == "POST" else browser.get(path))
        return _of_page(answer, await browser.flash() if verb == "POST" and answer.status_code == 303 else "")

    async def ask_host_agent(self, path: str, body: bytes, *, is_owner: bool) -> tuple[str, str]:
        """Call the host agent as the user that it trusts, or as another one."""
        speakers, channel = self._agent._speakers, Channel(f"unix:{self.socket}", None)
        trusted = speakers._trusted
        speakers._trusted = trusted if is_owner else set()
        call = channel.stream(f"/{path}", body, (), 20.0)
        try:
            async for answer in call:
                return "OK", answer.decode("latin-1")
            raise AssertionError(f"{path} ended without an answer")
        except CallFailed as error:
            return next(one.name for one in grpc.StatusCode if one.value[0] == error.code), error.message
        finally:
            call.leave()
            await channel.close()
            speakers._trusted = trusted


def _of_page(answer: httpx.Response, flash: str) -> tuple[str, str]:
    if answer.status_code == 303 and "/signin" in answer.headers["location"]:
        return "UNAUTHENTICATED", ""
    words = f"{answer.text} {flash}"
    if answer.status_code == 403 or "not authorized" in words:
        return "PERMISSION_DENIED", words
    if answer.status_code == 404 or "there is no" in words or "does not exist" in words:
        return "NOT_FOUND", words
    return "OK", words


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def every_front(servers: Servers, folder: Path) -> AsyncIterator[Fronts]:
    """All of them."""
    async with AsyncExitStack() as stack:
        fronts = Fronts(servers, folder, stack)
        await fronts.gateways()
        await fronts.console()
        await fronts.host_agent()
        yield fronts
