"""The matrix: calls every method of every server as every caller, and writes what came of it.

python -m tests.support.authority.matrix    # writes docs/security-matrix.txt anew
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import httpx
from google.protobuf import struct_pb2
from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from hqpb.v1 import service_pb2
from serving.rights.reach import ReachForm
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from tests.support.authority import requests
from tests.support.authority.callers import CALLERS, NAMES, tokens
from tests.support.authority.fronts import Fronts, every_front
from tests.support.authority.servers import Guarded, Servers, every_server

FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "security-matrix.txt"
HEAD: Final = "Who may do what\n===============\n"
YES, SOME, NO, HIDDEN, WHO, AT_REPLICA = "yes", "some", "no", "gone", "who?", "hq"
_OF: Final[Mapping[str, Mapping[str, requests.Body]]] = {
    "hq": requests.HQ,
    "federated": requests.HQ,
    "cms": requests.CMS,
    "nanny": requests.NANNY,
    "walle": requests.WALLE,
    "recorder": requests.RECORDER,
}
Ask = Callable[[str], Awaitable[tuple[str, str]]]
FRONTS: Final = ("consul", "xds", "dns", "host-agent", "console")
_PAGES: Final = {"/metrics": "/metrics", "/sd/prometheus": "/sd/prometheus?port=http"}
_THERE: Final = ("mail", "n2")  # what is out of the reach of who is said to reach web or n1


class Matrix:
    """Rows as they are found out."""

    def __init__(self, servers: Servers, http: httpx.AsyncClient) -> None:
        self._servers, self._http = servers, http
        self._tokens = tokens(servers.files.issuer)
        self._channels = {name: Channel(one.http, servers.tls) for name, one in servers.all.items()}
        self.rows: list[tuple[str, str, str, list[str]]] = []

    async def run(self) -> None:
        for server in self._servers.all.values():
            await self._prepare(server)
            for path in sorted(server.rules, key=_order(server)):
                for name, row in _rows(server, path):
                    await self._row(server, path, name, row)

    async def run_fronts(self, fronts: Fronts) -> None:
        """The same for what stands before the servers."""
        for server in FRONTS:
            for path, (rule, reach) in self._servers.all[server].rules.items():
                what = f"{rule.name}; {reach}" if reach is not None else rule.name
                for name, ask in self._front(fronts, server, path):
                    await self._front_row(server, name, what, ask)

    def _front(self, fronts: Fronts, server: str, path: str) -> Iterator[tuple[str, Ask]]:
        """The rows of a path, each with what a caller is answered."""
        one, name = self._servers.all[server], path.rpartition("/")[2]
        match server:
            case "consul" | "xds" if path in _PAGES:
                yield path, partial(self._site, one, "GET", _PAGES[path], None)
            case "consul":
                yield from ((of, partial(self._site, one, "GET", page, None)) for of, page in requests.CONSUL.items())
            case "xds":
                yield name, partial(self._xds, fronts, one.http, path)
            case "dns":
                yield from ((of, partial(self._dns, fronts, domain)) for of, domain in requests.DNS.items())
            case "host-agent":
                yield name, partial(self._host_agent, fronts, path, True)
                yield f"{name} by another user", partial(self._host_agent, fronts, path, False)
            case "console":
                route = path.removeprefix("console ")
                yield route, partial(self._console, fronts, route.split()[0], *requests.CONSOLE[route])

    async def _front_row(self, server: str, name: str, what: str, ask: Ask) -> None:
        answers = [await ask(caller) for caller in NAMES]
        sees_all = any(word in answers[NAMES.index("admi")][1] for word in _THERE)
        is_narrowed = sees_all and ("narrowed" in what or server == "console")
        self.rows.append((server, name, what, [_cell(code, text, narrowed=is_narrowed) for code, text in answers]))

    async def _xds(self, fronts: Fronts, address: str, path: str, caller: str) -> tuple[str, str]:
        return await fronts.ask_xds(address, path, self._proof(caller))

    async def _dns(self, fronts: Fronts, domain: str, _: str) -> tuple[str, str]:
        return await fronts.ask_dns(domain)

    async def _host_agent(self, fronts: Fronts, path: str, is_owner: bool, _: str) -> tuple[str, str]:
        body = _encoded(path, requests.HOST_AGENT[path.rpartition("/")[2]])
        return await fronts.ask_host_agent(path, body, is_owner=is_owner)

    async def _console(
        self, fronts: Fronts, verb: str, page: str, form: Mapping[str, str], caller: str
    ) -> tuple[str, str]:
        return await fronts.ask_console(verb, page, form, self._tokens[caller])

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels.values():
            await channel.close()

    async def _row(self, server: Guarded, path: str, name: str, row: Any) -> None:
        rule, reach = server.rules[path]
        answers = []
        for caller in NAMES:
            answers.append(await self._ask(server, path, row, caller))
            if name in requests.CHANGES and answers[-1][0] == "OK":
                await self._prepare(server)
        is_narrowed = reach is not None and (reach.form is ReachForm.NARROWED or "wire/List" in path)
        sees_all = any(word in answers[NAMES.index("admi")][1] for word in _THERE)
        cells = [_cell(code, text, narrowed=is_narrowed and sees_all) for code, text in answers]
        self.rows.append((server.name, name, f"{rule.name}; {reach}", cells))

    async def _prepare(self, server: Guarded) -> None:
        """Things of web and of mail, also after some of them were deleted."""
        for path, body in requests.SETUP.get(server.name, ()):
            code, text = await self._ask(server, path, body, "oper" if "AdminService" in path else "admi")
            assert code in ("OK", "ALREADY_EXISTS", "FAILED_PRECONDITION"), f"{server.name}: {path}: {code}: {text}"

    async def _ask(self, server: Guarded, path: str, row: Any, caller: str) -> tuple[str, str]:
        if isinstance(row, tuple):
            return await self._site(server, row[0], row[1], row[2], caller)
        if path.startswith("/"):
            return await self._site(server, "GET", row, None, caller)
        return await self._call(server, path, row, caller)

    async def _call(self, server: Guarded, path: str, body: requests.Body, caller: str) -> tuple[str, str]:
        """Over gRPC: the code, and the first answer that is no bookmark, or the error's message."""
        channel = self._channels[server.name]
        call = channel.stream(f"/{path}", _encoded(path, body), self._proof(caller), 20.0)
        try:
            async for answer in call:
                if "Watch" not in path or not _is_bookmark(path, answer):
                    return "OK", answer.decode("latin-1")
            raise AssertionError(f"{path} ended without an answer")
        except CallFailed as error:
            return grpc_name(error.code), error.message
        finally:
            call.leave()

    async def _site(self, server: Guarded, verb: str, path: str, body: Any, caller: str) -> tuple[str, str]:
        headers = {"content-type": "application/json", "fleet-lock-protocol": "true", **dict(self._proof(caller))}
        content = None if body is None else json.dumps(body)
        answer = await self._http.request(verb, f"https://{server.http}{path}", content=content, headers=headers)
        known = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 503: "UNAVAILABLE"}
        return known.get(answer.status_code, "OK"), answer.text

    def _proof(self, caller: str) -> tuple[tuple[str, str], ...]:
        token = self._tokens[caller]
        return (("authorization", f"Bearer {token}"),) if token else ()

    def text(self) -> str:
        """As the file has it."""
        lines = [HEAD]
        lines += [
            "Made by `make matrix`: every method of every server, called as every caller. `make test` compares it.",
            "All is about service web on node n1, and Wall-E's project web. Behind each row: its rule, what it",
            "reaches, and where that is compared (serving/rights/reach.py).",
            "",
            "yes: let in. some: let in, and shown what is within reach. no: PERMISSION_DENIED. gone: NOT_FOUND, as if",
            "it were not there. who?: UNAUTHENTICATED. hq: a federation gateway does not do this; it says to ask a",
            "replica. At the console: of the page or any part of it. Consul's API says 403 to whom it does not know,",
            "too; DNS and the host agent know no tokens.",
            "",
            *(f"  {one.name}  {one.what}" for one in CALLERS),
        ]
        server, width = "", 0
        for of, name, what, cells in self.rows:
            if of != server:
                together = [row[1] for row in self.rows if (row[0] in FRONTS) is (of in FRONTS)]
                server, width = of, max(map(len, together)) + 2
                lines += ["", f"{of:{width}}" + " ".join(f"{one:4}" for one in NAMES)]
            lines.append(f"{name:{width}}" + " ".join(f"{cell:4}" for cell in cells) + f"  {what}")
        return "\n".join(lines) + "\n"


_REFUSED: Final = {"UNAUTHENTICATED": WHO, "PERMISSION_DENIED": NO, "NOT_FOUND": HIDDEN}
_BROKEN: Final = ("UNAVAILABLE", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED")


def _cell(code: str, text: str, *, narrowed: bool) -> str:
    assert code not in _BROKEN or "not loaded" in text, f"{code}: {text}"
    if code in _REFUSED:
        return _REFUSED[code]
    if "a federation gateway does not serve" in text:
        return AT_REPLICA
    if "outside the granted scope" in text:  # of the one item that was asked about
        return NO
    return SOME if narrowed and not any(word in text for word in _THERE) else YES


def _encoded(path: str, body: requests.Body) -> bytes:
    service, _, name = path.partition("/")
    if service == "access.v1.AccessService":
        return ParseDict(body, struct_pb2.Struct()).SerializeToString()
    method = Default().FindServiceByName(service).FindMethodByName(name)
    return ParseDict(body, GetMessageClass(method.input_type)()).SerializeToString()


def _is_bookmark(path: str, answer: bytes) -> bool:
    if "WatchInstances" not in path:
        return False
    return bool(service_pb2.WatchInstancesResponse.FromString(answer).kind == service_pb2.WATCH_KIND_BOOKMARK)


def grpc_name(code: int) -> str:
    """Of a status."""
    return str(next(known.name for known in grpc.StatusCode if known.value[0] == code))


def _rows(server: Guarded, path: str) -> Iterator[tuple[str, Any]]:
    """The rows of a path, each with its request. Raises LookupError: there is none."""
    if path.startswith("cms.wire/"):
        method = path.partition("/")[2]
        yield f"wire {method}", requests.WIRE[method]
        return
    if path.startswith("/"):
        yield path, _PAGES[path]
        return
    method = path.partition("/")[2]
    found = [(name, body) for name, body in _OF[server.name].items() if name.split()[0] == method]
    if not found:
        raise LookupError(f"{server.name}: {path} has no row: add its request to tests/support/authority/requests.py")
    yield from found


def _order(server: Guarded) -> Any:
    names = [name.split()[0] for name in _OF[server.name]]

    def place(path: str) -> tuple[int, str]:
        method = path.rpartition("/")[2]
        is_call = not path.startswith(("/", "cms.wire"))
        return names.index(method) if is_call and method in names else len(names), path

    return place


async def made(*, with_fronts: bool = True) -> str:
    """The text of the file, found out by calling; `with_fronts`: what stands before the servers, too."""
    with tempfile.TemporaryDirectory() as folder:
        async with every_server(Path(folder)) as servers:
            tls = ssl.create_default_context(cafile=str(servers.files.authority.cert))
            async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=20) as http:
                matrix = Matrix(servers, http)
                try:
                    await matrix.run()
                    if with_fronts:
                        async with every_front(servers, Path(folder)) as fronts:
                            await matrix.run_fronts(fronts)
                finally:
                    await matrix.close()
                return matrix.text()


def recorded(*, with_fronts: bool = True) -> str:
    """The text of the file as it is."""
    text = FILE.read_text()
    return text if with_fronts else text.partition(f"\n{FRONTS[0]} ")[0]


def refused_calls(server: str, callers: Mapping[str, str]) -> set[tuple[str, str]]:
    """Methods of a server that none of their rows lets a caller into. `callers`: names to give them, by column."""
    block = FILE.read_text().partition(f"\n{server} ")[2].partition("\n\n")[0].splitlines()
    columns, refused, let_in = block[0].split(), set[tuple[str, str]](), set[tuple[str, str]]()
    for line in block[1:]:
        method, cells = line.split()[0], re.split(r" {2,}", line, maxsplit=1)[1].split()
        for column, caller in callers.items():
            is_refused = cells[columns.index(column)] in (NO, HIDDEN, WHO)
            (refused if is_refused else let_in).add((method, caller))
    return refused - let_in


if __name__ == "__main__":
    FILE.write_text(asyncio.run(made()))
    sys.stdout.write(f"{FILE} is written\n")
