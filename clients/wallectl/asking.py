"""Calls of walle.v1: one server after the other, until one answers."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import grpc

from wallepb.v1.service_pb2_grpc import WalleServiceStub

DEFAULT_PORT = 7471
Res = TypeVar("Res")
EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_UNREACHABLE = 1, 3, 4


@dataclass(frozen=True, slots=True)
class Connection:
    """Servers and what is shown to them."""

    servers: Sequence[str]
    timeout_s: float
    ca: str = ""
    token_file: str = ""


def complain(text: str) -> None:
    click.echo(f"walle: {text}", err=True)


def call(method: str, request: Any) -> Any:
    """The answer; ends the command with a message where there is none.

    The request id stays over all tries: an order that arrived and was not answered is not given twice.
    """
    connection: Connection = click.get_current_context().find_root().obj
    metadata = [("x-request-id", uuid.uuid4().hex), *_token(connection)]
    error: grpc.RpcError | None = None
    for server in connection.servers:
        with _channel(connection, server) as channel:
            try:
                stub = WalleServiceStub(channel)
                return getattr(stub, method)(request, timeout=connection.timeout_s, metadata=metadata)
            except grpc.RpcError as failed:
                error = failed
                if failed.code() is not grpc.StatusCode.UNAVAILABLE:
                    break
    sys.exit(_end(error))


def _channel(connection: Connection, server: str) -> grpc.Channel:
    target = server if ":" in server else f"{server}:{DEFAULT_PORT}"
    if not connection.ca:
        return grpc.insecure_channel(target)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(Path(connection.ca).read_bytes()))


def _token(connection: Connection) -> list[tuple[str, str]]:
    if not connection.token_file:
        return []
    return [("authorization", f"Bearer {Path(connection.token_file).read_text().strip()}")]


def _end(error: grpc.RpcError | None) -> int:
    """Says what went wrong; returns the exit code."""
    if error is None:
        complain("no server: give --server HOST:PORT")
        return EXIT_UNREACHABLE
    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        complain(f"no server answers: {error.details()}")
        return EXIT_UNREACHABLE
    complain(error.details() or code.name)
    return EXIT_NOT_FOUND if code is grpc.StatusCode.NOT_FOUND else EXIT_REFUSED


def servers_of(given: Sequence[str]) -> list[str]:
    """--server, else WALLE_SERVER, else this machine."""
    text = ",".join(given) or os.environ.get("WALLE_SERVER", "") or f"127.0.0.1:{DEFAULT_PORT}"
    return [part.strip() for part in text.split(",") if part.strip()]
