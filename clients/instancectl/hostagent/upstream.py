"""The way from the host agent to HQ: one connection, nothing sent twice; what a failed call means for its caller."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2  # type: ignore[import-untyped,unused-ignore]

from hqclient.clock import ClientClock
from hqclient.credentials import Credentials
from hqclient.errors import DETAILS_KEY, UNSURE_REASONS, HqApiError, decode_status
from hqclient.pool import PooledReplica, Replicas
from hqclient.retry import blames_endpoint
from hqpb.v1 import service_pb2 as pb
from serving.calls.current import forwarded_metadata
from serving.errors import Code, InvalidRequest, OutcomeUnknown, Retry, ServiceError, Violation
from serving.transport.client import CallFailed, Channel, Options

_CODES: Final = frozenset(get_args(Code))
_NUMBERS: Final = {code.value[0]: code.name for code in grpc.StatusCode}
_NOT_NOW: Final = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
_SERVICE: Final = "/hq.v1.InstanceService"
_HEALTH: Final = "/grpc.health.v1.Health/Check"
_OPTIONS: Final = Options(connect_timeout_s=3.0)
_SILENCE_S: Final = 30.0  # of a watch: six bookmarks
_LOOK_S: Final = 1.0
_PROBE_S: Final = 2.0


class UpstreamError(Exception):
    """A call to HQ failed: one error for all callers whose messages were in it.

    Attributes:
        error: the decoded error.
    """

    def __init__(self, failure: CallFailed, address: str) -> None:
        self._details = failure.binary(DETAILS_KEY)
        self.error: HqApiError = decode_status(
            failure.code, failure.message, self._details, address, sent=not failure.is_unprocessed
        )
        super().__init__(str(self.error))

    def service_error(self) -> ServiceError:
        """The error for one caller: HQ's own message with all details; without one, whether it may have been stored."""
        error = self.error
        if error.from_hq or not (error.outcome_unknown or error.nothing_stored):
            made = _kind("ServiceError", _code(error.code.name), error.reason or "RELAYED")(error.message)
            made.plain_details = _unpack_details(self._details)
            return made
        if error.nothing_stored:
            return Retry(f"HQ cannot be reached: {error.message}")
        return OutcomeUnknown(f"HQ did not respond: {error.message}; it may or may not be stored")


def batch_item_error(item: pb.ItemError, path: str) -> ServiceError:
    """The error of a batch's item as if it had been sent alone, which is what its caller did; `path`: `report[3]`."""
    code, reason, field = _code(_NUMBERS.get(item.code, "")), item.reason or "RELAYED", item.field
    if code == "INVALID_ARGUMENT":
        own = field.removeprefix(path).removeprefix(".")
        return InvalidRequest(Violation(own, item.message.replace(f"{path}.", "").removeprefix(f"{own}: ")))
    if code in _NOT_NOW and reason not in UNSURE_REASONS:
        return _kind("Retry", code, reason)(item.message)
    return _kind("ServiceError", code, reason)(item.message)


def _code(name: str) -> str:
    return name if name in _CODES else "INTERNAL"


@lru_cache(maxsize=256)
def _kind(base: str, code: str, reason: str) -> type[ServiceError]:
    """The error tree has code and reason on classes: make one more leaf for HQ's error."""
    bases: dict[str, type[ServiceError]] = {"ServiceError": ServiceError, "Retry": Retry}
    return type(f"Relayed{base}", (bases[base],), {"code": code, "reason": reason})


def _unpack_details(details: bytes) -> list[Any]:
    try:
        return list(status_pb2.Status.FromString(details).details)
    except DecodeError:
        return []


class Upstream:
    """Calls to HQ, in the name of the node. Close it when done."""

    def __init__(
        self, addresses: Sequence[str], credentials: Credentials, clock: ClientClock, rng: random.Random
    ) -> None:
        """Raises BadCredentials: a token would be sent in plain text."""
        credentials.check(addresses)
        self._credentials, self._clock = credentials, clock
        self._replicas = Replicas(addresses, clock, rng)
        self._channels = {replica.address: self._open_channel(replica.address) for replica in self._replicas.all}

    async def unary(self, method: str, request: bytes, deadline: float) -> bytes:
        """The encoded answer. Another replica is tried only if this one surely did nothing. Raises UpstreamError."""
        tried: set[str] = set()
        while True:
            replica, began = self._replicas.pick(tried), self._clock.now()
            tried.add(replica.address)
            try:
                channel = self._channels[replica.address]
                metadata = (*forwarded_metadata(), *self._credentials.metadata())
                answer = await channel.unary(f"{_SERVICE}/{method}", request, max(0.001, deadline - began), metadata)
            except CallFailed as failure:
                failed = UpstreamError(failure, replica.address)
                self._record_failure(replica, failed.error, began)
                if not failed.error.nothing_stored or len(tried) == len(self._channels):
                    raise failed from None
                continue
            self._replicas.record_success(replica)
            return answer

    async def watch(self, request: bytes) -> AsyncGenerator[bytes, None]:
        """Messages of one stream, until it ends, also because calls move to another replica. Raises UpstreamError."""
        replica, began = self._replicas.pick(), self._clock.now()
        channel = self._channels[replica.address]
        messages = channel.stream(f"{_SERVICE}/WatchInstances", request, self._credentials.metadata())
        try:
            while self._replicas.pick() is replica:
                async with asyncio.timeout(_SILENCE_S):
                    message = await anext(messages)
                self._replicas.record_success(replica)
                yield message
        except CallFailed as failure:
            failed = UpstreamError(failure, replica.address)
            self._record_failure(replica, failed.error, began)
            raise failed from None
        except StopAsyncIteration:
            return
        except TimeoutError:
            self._replicas.record_failure(replica)
        finally:
            messages.leave()

    async def tend(self) -> None:
        """Keep probing which replicas are back, so that load spreads over them again."""
        while True:
            await self._clock.sleep(_LOOK_S)
            await asyncio.gather(*(self._probe(replica) for replica in self._replicas.due()))

    async def close(self) -> None:
        """End every call."""
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))

    def _open_channel(self, address: str) -> Channel:
        return Channel(address, self._credentials.tls(), _OPTIONS, self._credentials.version)

    async def _probe(self, replica: PooledReplica) -> None:
        try:
            channel = self._channels[replica.address]
            answer = await channel.unary(_HEALTH, b"", _PROBE_S, self._credentials.metadata())
        except CallFailed:
            answer = b""
        if answer == b"\x08\x01":  # SERVING
            self._replicas.record_success(replica)
        else:
            self._replicas.record_failure(replica)

    def _record_failure(self, replica: PooledReplica, error: HqApiError, began: float) -> None:
        if blames_endpoint(error, self._clock.now() - began):
            self._replicas.record_failure(replica)
        elif error.from_hq:
            self._replicas.record_success(replica)
