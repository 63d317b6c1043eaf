"""A thousand agents at once on a secured replica: each gets its own node's answers and its own denials, as recorded."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio

from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import instance
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, Served, secure_channel, served
from tests.support.token_issuer import bearer
from tests.wire.crowd import PATIENCE_S, Crowd, Line
from tests.wire.echo_table import Ledger, Said

SEED = 20_261_122
AGENTS: Final = 1_000
_BATCH: Final = 250
_SERVICE: Final = "hq.v1.InstanceService"
_CODES: Final = {str(one.value[0]): one.name for one in grpc.StatusCode}

Send = Callable[[str, Message, list[tuple[str, str]]], Awaitable[tuple[str, str, bytes]]]
"""Method, request and headers; the name of the status, the message, and the answer."""


class Order(NamedTuple):
    """One call of an agent. `of`: whose instance it is about."""

    agent: int
    number: int
    method: str
    of: int

    @property
    def word(self) -> str:
        return f"c{self.agent}-{self.number}"

    @property
    def request(self) -> Message:
        if self.method == "GetInstance":
            return pb.GetInstanceRequest(id=f"i-{self.of}")
        return pb.BeginReportingRequest(instance_id=f"i-{self.of}", revision_id="r1", node=f"n{self.of}")


def _orders(rng: Random, agent: int) -> list[Order]:
    """Twice about its own instance, twice about another one's, in any order."""
    other = (agent + rng.randrange(1, AGENTS)) % AGENTS
    every = [(method, of) for method in ("GetInstance", "BeginReporting") for of in (agent, other)]
    rng.shuffle(every)
    return [Order(agent, number, *one) for number, one in enumerate(every)]


class Agents:
    """All of them, and what they were told."""

    def __init__(self, files: Secured) -> None:
        self._tokens = [[files.issuer.token(f"agent/n{i}", jti=f"{i}-{n}") for n in range(2)] for i in range(AGENTS)]
        self._rng = Random(SEED)
        self.told: Counter[tuple[str, str, bool]] = Counter()  # method, status, its own

    async def work(self, agent: int, send: Send) -> None:
        """Make its calls, each with another of its tokens than the one before."""
        for order in _orders(self._rng, agent):
            token = self._tokens[agent][order.number % 2]
            headers = [bearer(token), ("x-request-id", order.word)]
            code, message, answer = await send(order.method, order.request, headers)
            is_own = order.of == agent
            self.told[order.method, code, is_own] += 1
            if is_own:
                assert code == "OK", f"agent/n{agent} about its own: {code} {message}"
                if order.method == "GetInstance":
                    assert pb.GetInstanceResponse.FromString(answer).instance.meta.id == f"i-{agent}"
            elif order.method == "GetInstance":  # out of reach is as if it were not there
                assert (code, message) == ("NOT_FOUND", f"there is no instance i-{order.of}"), (
                    f"agent/n{agent}: {code} {message}"
                )
            else:
                assert code == "PERMISSION_DENIED", f"agent/n{agent} about i-{order.of}: {code} {message}"
                named = [word for word in message.replace(":", " ").split() if word.startswith("agent/")]
                assert named == [f"agent/n{agent}"], f"agent/n{agent} was told: {message}"


async def _begun(one: Served, files: Secured) -> None:
    """An instance on the node of each agent."""
    async with secure_channel(one.addresses.grpc, files.authority) as channel:
        admin = Caller(channel, files.issuer.token("admin"))
        for start in range(0, AGENTS, _BATCH):
            made = [instance(f"i-{i}", node=f"n{i}") for i in range(start, start + _BATCH)]
            await admin.call("ApplyInstances", pb.ApplyInstancesRequest(instance=made))


def _over_grpcio(channel: aio.Channel) -> Send:
    async def send(method: str, request: Message, headers: list[tuple[str, str]]) -> tuple[str, str, bytes]:
        call: Any = channel.unary_unary(f"/{_SERVICE}/{method}")
        try:
            answer = await call(request.SerializeToString(), timeout=60, metadata=aio.Metadata(*headers))
        except aio.AioRpcError as error:
            return error.code().name, error.details() or "", b""
        return "OK", "", answer

    return send


def _over_machine(line: Line) -> Send:
    async def send(method: str, request: Message, headers: list[tuple[str, str]]) -> tuple[str, str, bytes]:
        client = await line.client()
        _, done = client.call(f"{_SERVICE}/{method}", "hq", headers, request.SerializeToString())
        reply = await done
        assert not reply.ended, f"{reply.ended}: {client.why}"
        named = dict(reply.fields)
        assert named["x-request-id"] == dict(headers)["x-request-id"], f"another one's request id: {named}"
        return _CODES[named["grpc-status"]], unquote(named.get("grpc-message", "")), b"".join(reply.messages)

    return send


def _says_nothing(caller: int, number: int) -> Said:
    raise AssertionError((caller, number))


def _recorded(files: Secured) -> list[dict[str, Any]]:
    lines = files.audit.read_text().splitlines() if files.audit.exists() else []
    return [one for one in map(json.loads, lines) if one["request_id"].startswith("c") and "-" in one["request_id"]]


@pytest.mark.long
async def test_each_agent_gets_its_own_answers_and_denials_and_the_audit_log_says_so(files: Secured) -> None:
    async with served(files.security()) as one, AsyncExitStack() as stack:
        await _begun(one, files)
        agents, port = Agents(files), int(one.addresses.grpc.rpartition(":")[2])
        crowd = Crowd(port, _says_nothing, Ledger(), SEED, files.authority.cert.read_bytes())
        lines = [crowd.line() for _ in range(10)]
        ways = [_over_machine(line) for line in lines]
        ways += [_over_grpcio(await stack.enter_async_context(crowd.channel())) for _ in range(4)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for agent in range(AGENTS):
                group.create_task(agents.work(agent, ways[agent % len(ways)]))
        for line in lines:
            line.close()
        assert agents.told["GetInstance", "OK", True] == agents.told["BeginReporting", "OK", True] == AGENTS
        recorded = await eventually(lambda: found if len(found := _recorded(files)) >= 3 * AGENTS else None, 10)
    wrong = [line for line in recorded if line["identity"] != f"agent/n{line['request_id'][1:].partition('-')[0]}"]
    assert not wrong, wrong[:3]
