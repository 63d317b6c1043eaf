"""An attacker with one token, who calls everything with hostile arguments; what belongs to others must stay as it was.

Requests are made from those of the matrix: values are replaced by names of what is somebody else's, by patterns, and by
what no parser expects, and fields are added by the description of the message. Seeded: a failure can be repeated.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import httpx
from google.protobuf import json_format, struct_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from tests.support.authority import requests
from tests.support.authority.callers import tokens
from tests.support.authority.matrix import _OF, grpc_name
from tests.support.authority.servers import Guarded, Servers

CANARY: Final = "canary-5b1d"  # in what is shown of others' things, and in no request of the attacker
_CALL_S: Final = 3.0
_BROKEN: Final = ("INTERNAL", "UNKNOWN", "DATA_LOSS")
_ODD: Final = (
    "",
    "*",
    "web*",
    "WEB",
    "web ",
    "web/../mail",
    "../n2",
    "mail\u200b",
    "{node}",
    "-oProxyCommand=x",
    "x" * 300,
)
_SHARED: Final = ("admin", "operator", "wall-e", "nanny", "healer", "test", "ams", "r1", "10.0.0.1", "task-new")
_WIRE: Final = "cms.wire/"


class Side(NamedTuple):
    """An owner and its things: names of the service, its instance, node, task and scenario."""

    service: str
    instance: str
    node: str
    task: str
    scenario: str


WEB: Final = Side("web", "web-1", "n1", "task-n1", "work-n1")
MAIL: Final = Side("mail", "mail-1", "n2", "task-n2", "work-n2")


@dataclass
class Attack:
    """One identity at all servers.

    Attributes:
        done: calls that were let in since the last look, newest last.
        leaks, broken: answers that named what is others', and those of a server that did not know what to say.
        codes: how many calls were answered so.
    """

    servers: Servers
    http: httpx.AsyncClient
    caller: str
    foreign: Side
    rng: random.Random
    canary: str
    done: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        token = tokens(self.servers.files.issuer)[self.caller]
        self._proof = (("authorization", f"Bearer {token}"),) if token else ()
        self._words = (*WEB, *MAIL, *self.foreign, *self.foreign, *_ODD, *_SHARED)
        self._channels = {name: Channel(one.http, self.servers.tls) for name, one in self.servers.all.items()}
        self._methods = [(one, path) for one in self.servers.all.values() for path in one.rules]

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def call_once(self) -> None:
        """One hostile call of some method of some server."""
        server, path = self.rng.choice(self._methods)
        if path.startswith((_WIRE, "/")):
            what, code, text = await self._site(server, path)
        else:
            name, message = self._message(server, path)
            what = f"{server.name} {name} {' '.join(str(message).split())[:600]}"
            code, text = await self._call(server, path, message)
        self.codes[code] = self.codes.get(code, 0) + 1
        if self.canary in text:
            self.leaks.append(f"{what}: {text[:300]}")
        if code in _BROKEN:
            self.broken.append(f"{what}: {code} {text[:300]}")
        if code == "OK":
            self.done.append(what)

    async def _call(self, server: Guarded, path: str, message: Message) -> tuple[str, str]:
        call = self._channels[server.name].stream(f"/{path}", message.SerializeToString(), self._proof, _CALL_S)
        answers = []
        try:
            async with asyncio.timeout(0.3 if "Watch" in path else _CALL_S):
                async for answer in call:
                    answers.append(answer.decode("latin-1"))  # noqa: PERF401 # those that came before the time was over
        except CallFailed as error:
            return grpc_name(error.code), error.message
        except TimeoutError:
            pass
        finally:
            call.leave()
        return "OK" if answers else "TIMEOUT", "".join(answers)  # a watch that was not answered yet

    async def _site(self, server: Guarded, path: str) -> tuple[str, str, str]:
        verb, page, content = "GET", path, None
        if path.startswith(_WIRE):
            verb, page, body = requests.WIRE[path.removeprefix(_WIRE)]
            page = page.replace("wire-n1", self._word(plain=True))
            content = json.dumps(self._spoiled_body(body)) if body is not None else None
        headers = {"content-type": "application/json", "fleet-lock-protocol": "true", **dict(self._proof)}
        answer = await self.http.request(verb, f"https://{server.http}{page}", content=content, headers=headers)
        code = "OK" if answer.is_success else "INTERNAL" if answer.status_code == 500 else str(answer.status_code)
        return f"{server.name} {verb} {page} {content}", code, answer.text

    def _spoiled_body(self, body: requests.Body) -> requests.Body:
        copy = dict(body)
        for name in self.rng.sample(sorted(copy), min(2, len(copy))):
            copy[name] = [self._word()] if isinstance(copy[name], list) else self._word()
        return copy

    # --- requests -----------------------------------------------------------------------------------------------------

    def _message(self, server: Guarded, path: str) -> tuple[str, Message]:
        service, _, method = path.partition("/")
        name, body = self.rng.choice([one for one in _OF[server.name].items() if one[0].split()[0] == method])
        if service == "access.v1.AccessService":
            about = {key: self._word() for key in ("identity", "service", "node", "method") if self.rng.random() < 0.4}
            return name, json_format.ParseDict({**body, **about}, struct_pb2.Struct())
        descriptor = Default().FindServiceByName(service).FindMethodByName(method).input_type
        message = json_format.ParseDict(body, GetMessageClass(descriptor)())
        if self.rng.random() < 0.2:
            message.Clear()
        self._spoil(message)
        return name, message

    def _spoil(self, message: Message, depth: int = 0) -> None:
        """Replace what is there, and add what is not."""
        present: list[tuple[Any, Any]] = list(message.ListFields())
        for described, value in present:
            if self.rng.random() < 0.4:
                self._set(message, described, depth)
            elif described.message_type is not None and not _is_repeated(described):
                self._spoil(value, depth + 1)
        described_fields: list[Any] = list(message.DESCRIPTOR.fields)
        for _ in range(self.rng.randrange(3) if described_fields else 0):
            self._set(message, self.rng.choice(described_fields), depth)

    def _set(self, message: Message, described: FieldDescriptor, depth: int) -> None:
        name = described.name
        if described.message_type is not None and described.message_type.GetOptions().map_entry:
            return
        if described.message_type is not None:
            if depth < 4:
                self._spoil(
                    getattr(message, name).add() if _is_repeated(described) else getattr(message, name), depth + 1
                )
            return
        values = [self._value(described) for _ in range(self.rng.randrange(1, 4))]
        try:
            if _is_repeated(described):
                getattr(message, name).extend(values)
            else:
                setattr(message, name, values[0])
        except (ValueError, TypeError):
            return  # out of the range of its type

    def _value(self, described: FieldDescriptor) -> Any:
        if described.enum_type is not None:
            return self.rng.choice([one.number for one in described.enum_type.values] + [99])
        if described.type == FieldDescriptor.TYPE_STRING:
            return self._word()
        if described.type == FieldDescriptor.TYPE_BYTES:
            return self.rng.randbytes(self.rng.randrange(20))
        if described.type == FieldDescriptor.TYPE_BOOL:
            return self.rng.random() < 0.5
        return self.rng.choice((0, 1, 2, 60, -1, 2**31 - 1, 2**63 - 1))

    def _word(self, *, plain: bool = False) -> str:
        return self.rng.choice([*self.foreign] if plain else self._words)


def _is_repeated(described: FieldDescriptor) -> bool:
    return described.is_repeated


# --- what must stay ---------------------------------------------------------------------------------------------------

_READS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "hq": (("hq.v1.InstanceService/GetInstance", "instance"), ("hq.v1.AdminService/ListSuspensions", "suspension")),
    "cms": (("cms.v1.CmsService/ListTasks", "task"), ("cms.v1.CmsService/ListBudgets", "service")),
    "nanny": (("nanny.v1.NannyService/GetService", "service"),),
    "walle": (
        ("walle.v1.WalleService/GetHost", "node"),
        ("walle.v1.WalleService/GetProject", "service"),
        ("walle.v1.WalleService/GetScenario", "scenario"),
    ),
}


class Belongings:
    """What belongs to a side, as an admin is shown it."""

    def __init__(self, servers: Servers, side: Side) -> None:
        self._side = side
        self._token = tokens(servers.files.issuer)["admi"]
        self._channels = {name: Channel(servers.all[name].http, servers.tls) for name in _READS}

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def look(self) -> dict[str, str]:
        """By what was read: what of it has to stay."""
        found: dict[str, str] = {}
        for server, reads in _READS.items():
            for path, of in reads:
                found.update([one async for one in self._read(server, path, of)])
        return found

    async def _read(self, server: str, path: str, of: str) -> Any:
        side, name = self._side, path.rpartition("/")[2]
        asked = {
            "GetInstance": {"id": side.instance},
            "GetService": {"serviceId": side.service},
            "GetHost": {"host": side.node},
            "GetProject": {"project": side.service},
            "GetScenario": {"scenario": side.scenario},
        }.get(name, {})
        method = Default().FindServiceByName(path.partition("/")[0]).FindMethodByName(name)
        request = json_format.ParseDict(asked, GetMessageClass(method.input_type)())
        proof = (("authorization", f"Bearer {self._token}"),)
        body = await self._channels[server].unary(f"/{path}", request.SerializeToString(), 20.0, proof)
        answer = json_format.MessageToDict(GetMessageClass(method.output_type).FromString(body))
        for key, value in _kept(name, answer, side):
            yield f"{server} {name} {key}", json.dumps(value, sort_keys=True)


def _kept(name: str, answer: dict[str, Any], side: Side) -> Iterator[tuple[str, Any]]:
    """The parts of an answer that only their owners change: neither times nor what a server decides by itself."""
    for of, names in _PARTS.get(name, {}).items():
        yield of, {key: answer[of].get(key) for key in names} if names else answer[of]
    if name == "GetInstance":
        yield "reports", [one.get("reporter", "") for one in answer["instance"]["status"].get("revision", ())]
    if name == "ListSuspensions":
        yield side.node, [one for one in answer.get("suspensions", ()) if side.node in json.dumps(one)]
    if name == "ListTasks":
        yield side.task, [one["task"] for one in answer.get("state", ()) if one["task"]["id"] == side.task]
    if name == "ListBudgets":
        yield side.service, [one for one in answer.get("budget", ()) if one["name"] == side.service]


_PARTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "GetInstance": {"instance": ("meta", "spec")},
    "GetService": {"service": ("info", "head", "paused", "snapshot", "infoVersion")},
    "GetHost": {"host": ("project", "state", "status", "operation", "check", "bmc")},
    "GetProject": {"project": ()},
    "GetScenario": {"scenario": ("stage", "by", "reason", "ending")},
}
