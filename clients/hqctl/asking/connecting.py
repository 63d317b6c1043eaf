"""How a command connects: with the caller's credentials, saying which cluster is meant; with -v each call is shown."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

import click
import grpc

from hqclient.credentials import Credentials
from hqclient.links import ChannelFactory
from hqctl.asking.cluster import CLUSTER_HEADER

Tell = Callable[[str], None]


def _tell(text: str) -> None:
    click.echo(f"call: {text}", err=True)


def telling(open_channel: Callable[..., grpc.aio.Channel], tell: Tell = _tell) -> ChannelFactory:
    """A factory of channels that print their calls. `open_channel(address, interceptors)` opens one."""

    def factory(address: str) -> grpc.aio.Channel:
        tell(f"connecting to {address}")
        return open_channel(address, [UnaryTracer(address, tell), StreamTracer(address, tell)])

    return factory


class UnaryTracer(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc,type-arg,unused-ignore]
    """Prints unary calls."""

    def __init__(self, address: str, tell: Tell) -> None:
        self._address, self._tell = address, tell

    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        began = time.monotonic()
        details, request_id = _with_request_id(details)
        call = await continuation(details, request)
        code = await call.code()
        took_ms = (time.monotonic() - began) * 1000
        asked = " ".join(str(request).split())
        outcome = f"{code.name}, {took_ms:.1f} ms, request id {request_id}"
        self._tell(f"{_name(details)} at {self._address}: {outcome}  {_cut(asked)}".rstrip())
        return call


class StreamTracer(grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc,type-arg,unused-ignore]
    """Prints the start of streams."""

    def __init__(self, address: str, tell: Tell) -> None:
        self._address, self._tell = address, tell

    async def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        details, request_id = _with_request_id(details)
        asked = " ".join(str(request).split())
        told = f"{_name(details)} at {self._address}: stream begins, request id {request_id}"
        self._tell(f"{told}  {_cut(asked)}".rstrip())
        return await continuation(details, request)


def _with_request_id(details: Any) -> tuple[Any, str]:
    request_id = secrets.token_hex(6)
    metadata = grpc.aio.Metadata(*(details.metadata or ()), ("x-request-id", request_id))
    return details._replace(metadata=metadata), request_id


def _name(details: Any) -> str:
    method = details.method
    text = method.decode() if isinstance(method, bytes) else str(method)
    return text.rpartition("/")[2]


def _cut(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"


def channel_factory(credentials: Credentials, *, verbose: bool) -> ChannelFactory:
    """How to open a channel to an address."""
    if not verbose:
        return credentials.channel
    return telling(credentials.channel)


def metadata_source(cluster: str) -> Callable[[], Sequence[tuple[str, str]]]:
    """Return the metadata that is sent with each call beside the credentials."""
    named = ((CLUSTER_HEADER, cluster),) if cluster else ()
    return lambda: named
