"""Very many callers at once, over three kinds of clients, of whom some leave in the middle and some hang up."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Final
from urllib.parse import unquote

import grpc
from grpc import aio

from serving.h2.outgoing import Http2Stream
from tests.wire.echo_table import Came, Ledger, Said, echoes
from tests.wire.fake_table import GET, WATCH
from tests.wire.machine_client import MachineClient, Reply, connected
from tests.wire.raw_http import RawAnswer, RawConnection, post

PATIENCE_S: Final = 180.0  # twenty thousand calls, 13 s of processor time
_LEAVES_AFTER_S: Final = 0.03
_OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
_COARSE: Final = 0.04  # grpcio says an earlier timeout again that is not 3 % longer, as its table has it
_CONNECT: Final = {code.name.lower(): code.name for code in grpc.StatusCode} | {"canceled": "CANCELLED"}

Sayer = Callable[[int, int], Said]
"""What a caller says in its nth call."""


class Crowd:
    """Callers of one server; what they get is entered into a ledger."""

    def __init__(self, port: int, say: Sayer, ledger: Ledger, seed: int, authority: bytes = b"") -> None:
        """`authority`: the CA of the server's certificate in PEM form; empty: plain text."""
        self._port, self._say, self._ledger, self._rng = port, say, ledger, Random(seed)
        self._authority = authority

    def _tls(self, *protocols: str) -> ssl.SSLContext | None:
        if not self._authority:
            return None
        context = ssl.create_default_context(cadata=self._authority.decode())
        context.set_alpn_protocols([*protocols])
        return context

    async def all_of(self, *groups: list[Coroutine[Any, Any, None]]) -> None:
        """Let them all call at the same time. Raises what the first of them raised."""
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for one in [one for callers in groups for one in callers]:
                group.create_task(one)

    def _leaves(self, said: Said) -> bool:
        return said.order == "hang" or self._rng.random() < 0.05

    # --- grpcio -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[aio.Channel]:
        """A channel with a connection of its own."""
        address = f"localhost:{self._port}"
        if self._authority:
            credentials = grpc.ssl_channel_credentials(self._authority)
            channel = aio.secure_channel(address, credentials, options=_OPTIONS)
        else:
            channel = aio.insecure_channel(address, options=_OPTIONS)
        async with channel:
            yield channel

    async def by_grpcio(self, channel: aio.Channel, caller: int, calls: int) -> None:
        for number in range(calls):
            await self._grpcio_call(channel, self._say(caller, number))

    async def alone_by_grpcio(self, caller: int, calls: int) -> None:
        async with self.channel() as channel:
            await self.by_grpcio(channel, caller, calls)

    async def _grpcio_call(self, channel: aio.Channel, said: Said) -> None:
        make: Any = channel.unary_stream(f"/{WATCH}") if said.is_stream else channel.unary_unary(f"/{GET}")
        call = make(said.body, timeout=said.timeout_s, metadata=aio.Metadata(*[_binary(*one) for one in said.fields]))
        leaving = self._leave_soon(call.cancel) if self._leaves(said) else None
        code, message, payloads = "OK", "", list[bytes]()
        try:
            payloads = [one async for one in call] if said.is_stream else [await call]
        except aio.AioRpcError as error:
            code, message = error.code().name, error.details() or ""
        except asyncio.CancelledError:
            if leaving is None or not call.cancelled():
                raise
            code = "CANCELLED"
        finally:
            if leaving is not None:
                leaving.cancel()
        if code == "CANCELLED":
            assert leaving is not None, f"{said.word} was cancelled, and did not leave"
            self._ledger.counts["left"] += 1
            return
        sent = [*(await call.initial_metadata() or ()), *(await call.trailing_metadata() or ())]
        fields = tuple([(name, value) for name, value in sent if isinstance(value, str)])
        self._ledger.enter(said, Came(code, message, fields, echoes(said, payloads), _COARSE))

    def _leave_soon(self, leave: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._rng.random() * _LEAVES_AFTER_S, leave)

    # --- our own machine --------------------------------------------------------------------------------------------

    async def by_machine(self, line: Line, caller: int, calls: int) -> None:
        """Every other call twice in a row: the second time it is nothing but places in the table."""
        for number in range(calls):
            client, said = await line.client(), self._say(caller, number)
            await asyncio.gather(*[self._machine_call(client, said) for _ in range(1 + number % 2)])

    async def alone_by_machine(self, caller: int, calls: int) -> None:
        line = self.line()
        await self.by_machine(line, caller, calls)
        line.close()

    def line(self) -> Line:
        """A connection that is made anew whenever it was dropped."""
        rng = Random(self._rng.random())
        pieces = rng.choice((16_384, 16_384, 100))
        return Line(lambda: connected(self._port, rng, self._tls("h2"), piece_bytes=pieces))

    async def _machine_call(self, client: MachineClient, said: Said) -> None:
        fields = [*said.fields, ("grpc-timeout", f"{said.timeout_s}S")]
        stream, done = client.call(WATCH if said.is_stream else GET, "echo", fields, said.body)
        leaving = None
        if self._leaves(said):
            if self._rng.random() < 0.3:
                client.reset(stream)  # in the same turn
            leaving = self._leave_soon(lambda: client.reset(stream))
        came = await done
        if leaving is not None:
            leaving.cancel()
        if came.ended:
            self._check_why(said, came, leaving is not None, stream, client)
        else:
            self._ledger.enter(said, _of_grpc(said, came))

    def _check_why(self, said: Said, came: Reply, leaves: bool, stream: Http2Stream, client: MachineClient) -> None:
        if came.ended == "reset":
            assert leaves, f"{stream} of {said.word} was reset by the server"
            self._ledger.counts["left"] += 1
        else:
            assert client.is_dropped, f"the server hung up on {said.word}: {client.why}"
            self._ledger.counts["hung up"] += 1

    async def hang_up_now_and_then(self, lines: list[Line], times: int) -> None:
        """Drop one of these connections, with all that is under way on it."""
        for _ in range(times):
            await asyncio.sleep(self._rng.random() * 0.1)
            self._rng.choice(lines).drop()

    # --- HTTP/1.1 ---------------------------------------------------------------------------------------------------

    async def by_http1(self, caller: int, calls: int) -> None:
        """Requests of four callers in one pipeline, whose client hangs up in the middle now and then."""
        for number in range(calls):
            batch = [self._say(caller + i, number) for i in range(4)]
            batch = [
                one._replace(order="later" if one.is_stream or one.order == "hang" else one.order) for one in batch
            ]
            tls = self._tls("http/1.1")
            name = "localhost" if tls is not None else None
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=tls, server_hostname=name)
            try:
                connection = RawConnection(reader, writer)
                await connection.send(b"".join(map(_posted, batch)))
                for said in batch:
                    if self._rng.random() < 0.05:
                        writer.transport.abort()
                        self._ledger.counts["hung up"] += 1
                        break
                    self._ledger.enter(said, _of_connect(said, await connection.answer()))
            finally:
                writer.close()
                with suppress(ConnectionError, ssl.SSLError):
                    await writer.wait_closed()


class Line:
    """One connection of our own machine, made when it is needed."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, MachineClient]]) -> None:
        self._connect = connect
        self._client: MachineClient | None = None
        self._connecting = asyncio.Lock()

    async def client(self) -> MachineClient:
        async with self._connecting:
            if self._client is None or self._client.is_lost:
                self._client = await self._connect()
            return self._client

    def drop(self) -> None:
        if self._client is not None:
            self._client.drop()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _binary(name: str, value: str) -> tuple[str, str | bytes]:
    return (name, base64.b64decode(value + "=" * (-len(value) % 4))) if name.endswith("-bin") else (name, value)


def _of_grpc(said: Said, reply: Reply) -> Came:
    named = dict(reply.fields)
    code = {str(one.value[0]): one.name for one in grpc.StatusCode}[named["grpc-status"]]
    return Came(code, unquote(named.get("grpc-message", "")), tuple(reply.fields), echoes(said, reply.messages))


def _posted(said: Said) -> bytes:
    head = post(said.body, content_type="application/proto", connect_timeout_ms=str(1_000 * said.timeout_s))
    lines = "".join([f"{name}: {value}\r\n" for name, value in said.fields]).encode()
    first, _, rest = head.partition(b"\r\n")
    return first + b"\r\n" + lines + rest


def _of_connect(said: Said, answer: RawAnswer) -> Came:
    fields = tuple([(name.removeprefix("trailer-"), value) for name, value in answer.headers.items()])
    if answer.status == 200:
        return Came("OK", "", fields, echoes(said, [answer.body]))
    told = answer.json()
    return Came(_CONNECT[told["code"]], told.get("message", ""), fields)
