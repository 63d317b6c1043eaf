"""Readiness checks with hostile targets: whoever may deploy a service chooses what they call."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hqpb.v1.instance_pb2 import ReadinessCheck, ResourceAllocation
from instancectl.containers.checks import Checker
from instancectl.content.guard import NoGuard
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.reaper import ProcessReaper
from instancectl.wanted.desired import Desired


@asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers everything with `answer`; yields its port and what it was sent."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65_536))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1], heard


async def passes(check: ReadinessCheck, port: int, host: str = "") -> bool:
    return await checker(host, port).passes(check, {}, 5.0)


def checker(host: str, port: int) -> Checker:
    allocation = ResourceAllocation(host=host)
    allocation.port.add(name="http", number=port)
    desired = Desired("i-1", "node-1", (), allocation)
    return Checker(desired, Commands(Children("x", ProcessReaper())), NoGuard(), Path("/"))


def http(path: str) -> ReadinessCheck:
    check = ReadinessCheck()
    check.http.port, check.http.path = "http", path
    return check


@pytest.mark.parametrize(
    "path", ["/ HTTP/1.1\r\nhost: x\r\n\r\nPOST /orders HTTP/1.1\r\n\r\n", "/a b", "health", "/\u00fc"]
)
async def test_nothing_is_sent_for_a_malformed_path(path: str) -> None:
    async with server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, heard):
        assert not await passes(http(path), port)
        assert not heard
        assert await passes(http(""), port)


async def test_a_name_that_does_not_resolve_keeps_no_other_instances_checks_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise checks of one instance could take all lookup threads, and no other instance would become ready."""
    found, answered, asked = socket.getaddrinfo, threading.Event(), list[str]()

    def look_up(host: str, *args: Any, **named: Any) -> Any:
        if host == "slow.example":
            asked.append(host)
            answered.wait(20)
        return found("127.0.0.1" if host == "slow.example" else host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    slow = checker("slow.example", 1)
    check = ReadinessCheck()
    check.tcp.port = "http"
    async with server(b"") as (port, _):
        try:
            waiting = [asyncio.ensure_future(slow.passes(check, {}, 0.1)) for _ in range(100)]
            assert not any(await asyncio.gather(*waiting))
            assert asked == ["slow.example"]
            assert await passes(check, port, "127.0.0.1")
        finally:
            answered.set()


async def test_an_endless_line_as_an_answer_fails_only_the_check() -> None:
    async with server(b"x" * 200_000) as (port, _):
        assert not await passes(http("/"), port)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "::ffff:169.254.169.254", "224.0.0.1"])
@pytest.mark.parametrize("kind", ["http", "tcp", "grpc"])
async def test_no_check_connects_to_a_link_local_or_multicast_address(
    host: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At link-local addresses, metadata services answer anybody who reaches them."""

    async def connect(*where: object, **_: object) -> None:
        raise AssertionError(f"it connects to {where}")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    check = ReadinessCheck()
    getattr(check, kind).port = "http"
    assert not await passes(check, 80, host)
