"""docs/security-matrix.txt, cell by cell: over gRPC, over HTTP, and through a gateway."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import grpc
import httpx
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from hqpb.v1 import service_pb2 as pb
from serving.listeners import Addresses
from tests.support.canary import found_in
from tests.support.rights_requests import create
from tests.support.secured import Caller, Secured, Served, secure_channel, served
from tests.support.secured_gateway import federated
from tests.support.security_matrix import HERE, METHODS, NO, REQUESTS, THERE, WHO, YES, Row, read
from tests.wire.secured_http import secured_http

Outcome = tuple[str, str]  # a cell of the table, and what was said
Try = Callable[[Row, str], Awaitable[Outcome]]  # by the token of a caller

_SUBJECTS = {
    "reader": "reader/ada",
    "agent": "agent/n1",
    "agent-2": "agent/n2",
    "uploader": "web-uploader",
    "uploader-2": "mail-uploader",
    "scheduler": "scheduler",
    "operator": "operator",
    "admin": "admin",
}
_CELLS = {"UNAUTHENTICATED": WHO, "PERMISSION_DENIED": NO, "NOT_FOUND": NO}  # out of reach is not there
# What a caller that is let in is told about these requests, as they are.
_LET_IN = {"OK", "ABORTED", "FAILED_PRECONDITION"}


def cell(code: str, words: str) -> Outcome:
    """What a status comes to."""
    code = code.upper()
    assert code in _CELLS or code in _LET_IN, f"{code}: {words}"
    return _CELLS.get(code, YES), f"{code}: {words}"


def tokens(files: Secured) -> dict[str, str]:
    """By caller."""
    issuer = files.issuer
    return {
        "nobody": "",
        "expired": issuer.token("admin", good_for_s=-60),
        "for-other": issuer.token("admin", aud="another"),
        **{caller: issuer.token(subject) for caller, subject in _SUBJECTS.items()},
    }


@pytest.fixture
async def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    """With web-1 on n1 and web-2 on n2."""
    security = files.security(**files.with_certificates())
    async with (
        served(security, grpc_mtls="127.0.0.1:0") as one,
        secure_channel(one.addresses.grpc, files.authority) as c,
    ):
        admin = Caller(c, files.issuer.token("admin"))
        for name, node in (("web-1", "n1"), ("web-2", "n2")):
            await admin.call("CreateInstance", create(name, "web", node))
        yield one


@pytest.fixture
async def gateway(files: Secured, replica: Served) -> AsyncIterator[Addresses]:
    """Over that replica."""
    async with federated(files, replica.addresses.grpc_mtls) as addresses:
        yield addresses


# --- transports ---


@asynccontextmanager
async def over_grpc(address: str, files: Secured) -> AsyncIterator[Try]:
    async with secure_channel(address, files.authority) as channel:

        async def attempt(row: Row, token: str) -> Outcome:
            try:
                answer = await _one_answer(Caller(channel, token), row)
            except grpc.aio.AioRpcError as error:
                return cell(error.code().name, error.details() or "")
            return of_answer(answer)

        yield attempt


async def _one_answer(caller: Caller, row: Row) -> Message:
    request = REQUESTS[row.name]()
    if not METHODS[row.call].server_streaming:
        answer: Message = await caller.call(row.call, request)
        return answer
    stream = caller.watch(request)  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(20):
            while (message := await stream.read()).kind == pb.WATCH_KIND_BOOKMARK:
                pass  # a gateway opens with one before it has heard of its locations
        return cast("Message", message)
    finally:
        stream.cancel()


@asynccontextmanager
async def over_http(address: str, files: Secured) -> AsyncIterator[Try]:
    tls = ssl.create_default_context(cafile=str(files.authority.cert))
    async with httpx.AsyncClient(verify=tls, base_url=f"https://{address}", trust_env=False, timeout=20) as client:

        async def attempt(row: Row, token: str) -> Outcome:
            method = METHODS[row.call]
            path = f"/{method.containing_service.full_name}/{method.name}"
            headers = {"authorization": f"Bearer {token}"} if token else {}
            body = json_format.MessageToJson(REQUESTS[row.name]()).encode()
            if method.server_streaming:
                return await _first_of_stream(client, path, headers, body)
            answer = await client.post(path, content=body, headers={**headers, "content-type": "application/json"})
            if answer.status_code != 200:
                return cell(answer.json()["code"], answer.text)
            if row.call == "ApplyInstances":
                return of_answer(json_format.ParseDict(answer.json(), pb.ApplyInstancesResponse()))
            return YES, f"OK: {answer.text}"

        yield attempt


async def _first_of_stream(client: httpx.AsyncClient, path: str, headers: Mapping[str, str], body: bytes) -> Outcome:
    headers = {**headers, "content-type": "application/connect+json"}
    enveloped = struct.pack(">BI", 0, len(body)) + body
    seen = b""
    async with client.stream("POST", path, content=enveloped, headers=headers) as answer:
        async for part in answer.aiter_raw():
            seen += part
            while len(seen) >= 5 and len(seen) >= 5 + struct.unpack(">I", seen[1:5])[0]:
                flags, size = struct.unpack(">BI", seen[:5])
                message, seen = json.loads(seen[5 : 5 + size]), seen[5 + size :]
                if flags & 2:
                    return cell(message["error"]["code"], message["error"]["message"])
                if message["kind"] != "WATCH_KIND_BOOKMARK":
                    return YES, f"OK: {message}"
    raise AssertionError("the stream ended without a word")


def of_answer(answer: Message) -> Outcome:
    """ApplyInstances says of each item whether it was refused."""
    if isinstance(answer, pb.ApplyInstancesResponse):
        for result in answer.result:
            if result.HasField("error"):
                return cell(_name(result.error.code), result.error.message)
    return YES, f"OK: {answer}"


def _name(code: int) -> str:
    return next(known.name for known in grpc.StatusCode if known.value[0] == code)


# --- the tests ---


def test_every_call_of_the_services_has_a_row_and_every_row_a_request() -> None:
    rows = read()
    assert {row.call for row in rows} == set(METHODS)
    assert [row.name for row in rows] == list(REQUESTS)
    assert {value for row in rows for value in row.allowed.values()} == {YES, NO, WHO}
    assert {row.gateway for row in rows} == {HERE, THERE}


class Trials:
    """Every row by every caller.

    Attributes:
        wrong: cells that are not as the table says.
        held: rows and callers that were given a secret descriptor.
    """

    def __init__(self, wanted: Callable[[Row, str, str], bool]) -> None:
        self.wrong: list[str] = []
        self.held: set[tuple[str, str]] = set()
        self._wanted = wanted

    async def run(self, attempt: Try, by_caller: Mapping[str, str]) -> None:
        for row in read():
            assert row.allowed.keys() == by_caller.keys()
            for caller, token in by_caller.items():
                self._judge(row, caller, *await attempt(row, token))

    def _judge(self, row: Row, caller: str, got: str, words: str) -> None:
        if not self._wanted(row, row.allowed[caller], got):
            self.wrong.append(f"{row.name} by {caller}: {got}, not {row.allowed[caller]} ({words[:200]})")
        if found_in(words):
            self.held.add((row.name, caller))


@pytest.mark.long
@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_a_replica_lets_in_whom_the_table_says_and_shows_secrets_to_two(
    replica: Served, files: Secured, transport: str
) -> None:
    over = over_grpc if transport == "grpc" else over_http
    trials = Trials(lambda row, cell, got: got == cell)
    async with over(getattr(replica.addresses, transport), files) as attempt:
        await trials.run(attempt, tokens(files))
    assert trials.wrong == []
    assert trials.held == {("GetRevision", "agent"), ("GetRevision", "uploader")}
    async with secured_http(replica, files, files.issuer.token("admin")) as client:
        metrics = await client.get("/metrics")
    assert metrics.status_code == 200
    assert found_in(metrics.text + files.audit.read_text()) == []


@pytest.mark.long
@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_a_gateway_lets_in_nobody_else(gateway: Addresses, files: Secured, transport: str) -> None:
    def wanted(row: Row, cell: str, got: str) -> bool:
        if row.gateway == HERE or cell == WHO:
            return got == cell
        return got in (YES, NO) and not (got == NO and cell == YES)

    over = over_grpc if transport == "grpc" else over_http
    trials = Trials(wanted)
    async with over(getattr(gateway, transport), files) as attempt:
        await trials.run(attempt, tokens(files))
    assert trials.wrong == []
    assert trials.held == set()


async def test_what_a_gateway_does_not_carry_out_it_carries_out_for_nobody(gateway: Addresses, files: Secured) -> None:
    done = []
    async with over_grpc(gateway.grpc, files) as attempt:
        for row in (row for row in read() if row.gateway == THERE):
            for caller, token in tokens(files).items():
                _, words = await attempt(row, token)
                if words.startswith("OK"):
                    done.append(f"{row.name} by {caller}")
    assert done == []
