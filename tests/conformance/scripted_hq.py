"""The scripted HQ: replicas on real sockets that send what a scenario says, when it says it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from hqpb.v1 import service_pb2 as pb
from tests.clients.deeds import cut, refuse
from tests.conformance.messages import build_message
from tests.conformance.scenarios import ScenarioStep
from tests.support.grpcio_server import add_service
from tests.support.reserved_port import KeptPort

Context = Any
_ENDS: Final = frozenset({"cut", "end", "refuse"})


@dataclass(eq=False)
class ScriptedStream:
    """One watch of the client's, as it arrived.

    Attributes:
        at: when, on the monotonic clock.
        is_open: the client or the script has not ended it.
    """

    replica: ScriptedReplica
    request: pb.WatchInstancesRequest
    authorization: str
    at: float = field(default_factory=time.monotonic)
    is_open: bool = True
    steps: asyncio.Queue[ScenarioStep] = field(default_factory=asyncio.Queue)


class ScriptedReplica:
    """One replica of the scripted HQ, on a port that stays its own."""

    def __init__(self, hq: ScriptedHq, name: str) -> None:
        self._hq, self.name = hq, name
        self._port = KeptPort()
        self.address = f"127.0.0.1:{self._port.number}"
        self._server: grpc.aio.Server | None = None
        self._mute: socket.socket | None = None
        self.is_frozen = False

    async def start(self) -> None:
        """Serve, from the certificates that are current."""
        self._unmute()
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_service(self._server, pb.DESCRIPTOR.services_by_name["InstanceService"], self)
        if self._hq.certificate is None:
            self._server.add_insecure_port(self.address)
        else:
            key, chain, ca = self._hq.certificate
            made = grpc.ssl_server_credentials([(key, chain)], root_certificates=ca, require_client_auth=True)
            self._server.add_secure_port(self.address, made)
        await self._server.start()

    async def stop(self) -> None:
        """Refuse connections; streams are cut."""
        self._unmute()
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(None)

    async def mute(self) -> None:
        """Accept connections and never say anything on them: what the kernel does for a process that is stopped."""
        await self.stop()
        self._mute = socket.socket()
        self._mute.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._mute.bind(("127.0.0.1", self._port.number))
        self._mute.listen(64)

    def _unmute(self) -> None:
        if self._mute is not None:
            self._mute.close()
            self._mute = None

    async def WatchInstances(  # noqa: N802
        self, request: pb.WatchInstancesRequest, context: Context
    ) -> AsyncIterator[pb.WatchInstancesResponse]:
        if self.is_frozen:
            await asyncio.Event().wait()
        words: Any = dict(context.invocation_metadata() or ())
        stream = ScriptedStream(self, request, words.get("authorization", ""))
        await self._hq.admit(stream, context)
        try:
            while True:
                step = await stream.steps.get()
                if step.verb in _ENDS:
                    stream.is_open = False
                    await _end_stream(step, context)
                    return
                yield build_message(step, self.name)
        finally:
            stream.is_open = False


async def _end_stream(step: ScenarioStep, context: Context) -> None:
    """End the stream as the step says: cleanly, by a broken connection, or by an error (code and reason)."""
    if step.verb == "cut":
        await cut()(context)
    if step.verb == "refuse":
        code = grpc.StatusCode[str(step.what)]
        await refuse(code, step.options.get("reason", "REFUSED"), retry_delay_s=step.options.get("retry_s"))(context)


class ScriptedHq:
    """The replicas of a scenario, and the streams that arrive at any of them.

    Attributes:
        scripts: what streams to come are sent at once, one script each.
        accepted_token: streams with another token are refused; None: any is accepted.
        certificate: key, chain and CA in PEM form; None: no TLS.
    """

    def __init__(self, replicas: int, certificate: tuple[bytes, bytes, bytes] | None = None) -> None:
        self.certificate = certificate
        self.replicas = [ScriptedReplica(self, f"replica-{n}") for n in range(1, replicas + 1)]
        self.streams: list[ScriptedStream] = []
        self.scripts: deque[Sequence[ScenarioStep]] = deque()
        self.accepted_token: str | None = None
        self._seen = 0
        self._arrived = asyncio.Condition()

    async def start(self) -> None:
        for replica in self.replicas:
            await replica.start()

    async def stop(self) -> None:
        for replica in self.replicas:
            await replica.stop()

    async def admit(self, stream: ScriptedStream, context: Context) -> None:
        """A stream begins; raises (ends the call) if its token is not accepted."""
        if self.accepted_token is not None and stream.authorization != f"Bearer {self.accepted_token}":
            await refuse(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", "the token has expired")(context)
        if self.scripts:
            for step in self.scripts.popleft():
                stream.steps.put_nowait(step)
        async with self._arrived:
            self.streams.append(stream)
            self._arrived.notify_all()

    async def next_stream(self, within_s: float) -> ScriptedStream:
        """The next stream that no step has looked at yet. Raises TimeoutError."""
        async with asyncio.timeout(within_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.streams) > self._seen)
        self._seen += 1
        return self.streams[self._seen - 1]

    async def send(self, step: ScenarioStep, within_s: float) -> None:
        """Send a step on the newest stream that is open; waits for one."""
        async with asyncio.timeout(within_s), self._arrived:
            await self._arrived.wait_for(lambda: bool(self.streams) and self.streams[-1].is_open)
        stream, self._seen = self.streams[-1], len(self.streams)
        stream.steps.put_nowait(step)
        if step.verb in _ENDS:
            stream.is_open = False  # what follows goes to the stream after it

    def replica(self, which: str) -> Sequence[ScriptedReplica]:
        """`first` is where the client's first stream came, `current` where its newest did; `others`, `all`."""
        if which == "all":
            return self.replicas
        stream = self.streams[-1 if which == "current" else 0]
        if which == "others":
            return [replica for replica in self.replicas if replica is not stream.replica]
        return [stream.replica]
