"""A server of several processes, called with its generated messages; if one process is away, the next is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import grpc
from google.protobuf import json_format, struct_pb2

from console.backends.asking import OF_HQ, TIMEOUT_S, Trouble, metadata
from console.backends.patience import PART_S, Patience
from hqclient.credentials import Credentials
from hqclient.errors import decode

R = TypeVar("R")
WHO_AM_I: Final = "/access.v1.AccessService/WhoAmI"
_AWAY: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_SHARE_S: Final = 2.0  # for one process, while another one was not asked yet


@dataclass(frozen=True, slots=True)
class Person:
    """A name (empty without authentication), the roles for what was asked about, and those for anything."""

    name: str = ""
    roles: frozenset[str] = frozenset()
    somewhere: frozenset[str] = frozenset()


class Remote:
    """Channels to all processes of one server."""

    def __init__(
        self,
        name: str,
        addresses: Sequence[str],
        credentials: Credentials | None,
        audiences: frozenset[str] = OF_HQ,
    ) -> None:
        """`name`: as pages call it. `audiences`: it is sent tokens that are for one of these only."""
        self.name, self._addresses, self._audiences = name, list(addresses), audiences
        self._credentials = credentials or Credentials()
        self._patience = Patience(name, PART_S)
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def close(self) -> None:
        """End every call and connection."""
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))

    async def read(
        self, path: str, request: Any, response: Callable[[bytes], R], wait_s: float | None = None
    ) -> R | Trouble:
        """A call that changes nothing: its answer, or why there is none; at once while the server hangs.

        `wait_s`: for slow requests.
        """
        return await self._patience.run_call(lambda: self.call(path, request, response), wait_s)

    async def call(self, path: str, request: Any, response: Callable[[bytes], R], timeout_s: float = TIMEOUT_S) -> R:
        """One call, `/package.Service/Method`. Raises HqApiError."""
        last = self._addresses[-1]
        for address in [*self._addresses]:
            limit_s = timeout_s if address == last else min(_SHARE_S, timeout_s)
            try:
                found = await self._send(address, path, request, response, limit_s)
            except grpc.aio.AioRpcError as error:
                if error.code() in _AWAY:
                    self._addresses = [*(one for one in self._addresses if one != address), address]  # asked last now
                if error.code() is not grpc.StatusCode.UNAVAILABLE or address == last:
                    raise await self._credentials.explain(decode(error, address)) from None
            else:
                return found
        raise AssertionError("there is at least one address")

    async def _send(self, address: str, path: str, request: Any, response: Callable[[bytes], R], limit_s: float) -> R:
        if address not in self._channels:
            self._channels[address] = self._credentials.channel(address)
        method: Any = self._channels[address].unary_unary(
            path, request_serializer=lambda message: message.SerializeToString(), response_deserializer=response
        )
        answer: R = await method(request, metadata=tuple(metadata(self._audiences)), timeout=limit_s)
        return answer

    async def roles(self, service: str = "", node: str = "") -> frozenset[str]:
        """This person's roles at the server for a service and node; empty if that is unknown."""
        return (await self.person(service, node)).roles

    async def person(self, service: str = "", node: str = "") -> Person:
        """Who this is to the server."""
        request = struct_pb2.Struct()
        request.update({"service": service, "node": node})
        found = await self.read(WHO_AM_I, request, struct_pb2.Struct.FromString)
        if isinstance(found, Trouble):
            return Person()
        told = json_format.MessageToDict(found)
        roles, somewhere = (frozenset(map(str, told.get(key, ()))) for key in ("roles", "roles_somewhere"))
        return Person(str(told.get("name", "")), roles, somewhere)
