"""Calls of walle.v1: one server after the other, until one answers."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import grpc
from google.protobuf.message_factory import GetMessageClass

from hqcli.controllers import AWAY, ControllerOption
from hqcli.exits import Exit, exit_of
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from hqclient.errors import HqApiError, decode
from wallepb.v1 import service_pb2

DEFAULT_PORT = 7471
Res = TypeVar("Res")
WALLE: Final = ControllerOption(
    "Wall-E", "--server", "WALLE_SERVER", f"127.0.0.1:{DEFAULT_PORT}", field="walle", prefix="WALLE_"
)


@dataclass(frozen=True, slots=True)
class WalleConnection:
    """Servers and what is shown to them."""

    servers: Sequence[str]
    timeout_s: float
    files: CredentialFiles


def complain(text: str) -> None:
    click.echo(f"walle: {text}", err=True)


def call(method: str, request: Any) -> Any:
    """The answer; exits with a message if there is none.

    All tries share one request id, so that an order whose answer was lost is not given twice.
    """
    connection: WalleConnection = click.get_current_context().find_root().obj
    try:
        Credentials(connection.files).check(connection.servers)
        metadata = [("x-request-id", uuid.uuid4().hex), *_token(connection)]
    except BadCredentials as wrong:
        complain(str(wrong))
        sys.exit(Exit.NOT_ALLOWED)
    last: HqApiError | None = None
    for server in connection.servers:
        with _channel(connection, server) as channel:
            try:
                return _method(channel, method)(request, timeout=connection.timeout_s, metadata=metadata)
            except grpc.RpcError as failed:
                known: Any = failed
                error = decode(known, server)
                error.earlier_try_unknown = last is not None and last.outcome_unknown
                last = error
                if failed.code() is not grpc.StatusCode.UNAVAILABLE:
                    break
    assert last is not None
    sys.exit(_end(last, writing=not method.startswith(("Get", "List"))))


def _method(channel: grpc.Channel, name: str) -> Any:
    method = service_pb2.DESCRIPTOR.services_by_name["WalleService"].methods_by_name[name]
    ask, answer = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    return channel.unary_unary(
        f"/{method.containing_service.full_name}/{name}", ask.SerializeToString, answer.FromString
    )


def _channel(connection: WalleConnection, server: str) -> grpc.Channel:
    target = server if ":" in server else f"{server}:{DEFAULT_PORT}"
    ca, key, cert = (_read_file(name) for name in (connection.files.ca, connection.files.key, connection.files.cert))
    if not connection.files.tls:
        return grpc.insecure_channel(target)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(ca, key, cert))


def _read_file(name: str) -> bytes | None:
    return Path(name).read_bytes() if name else None


def _token(connection: WalleConnection) -> list[tuple[str, str]]:
    token = _read_file(connection.files.token_file)
    return [("authorization", f"Bearer {token.decode().strip()}")] if token else []


def _end(error: HqApiError, *, writing: bool) -> Exit:
    """Says what went wrong; returns the exit code."""
    away = not error.from_hq and error.code.name in AWAY
    code = exit_of(error, writing=writing)
    unknown = "; it may have been done: check before you retry" if code is Exit.OUTCOME_UNKNOWN else ""
    complain((WALLE.unreachable(error) if away else error.message) + unknown)
    return code
