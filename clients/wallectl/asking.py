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

from hqcli.contexts import BadConfig, Context, config_path, load
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from wallepb.v1.service_pb2_grpc import WalleServiceStub

DEFAULT_PORT = 7471
Res = TypeVar("Res")
EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_UNREACHABLE = 1, 3, 4


@dataclass(frozen=True, slots=True)
class Connection:
    """Servers and what is shown to them."""

    servers: Sequence[str]
    timeout_s: float
    files: CredentialFiles


def complain(text: str) -> None:
    click.echo(f"walle: {text}", err=True)


def call(method: str, request: Any) -> Any:
    """The answer; ends the command with a message where there is none.

    The request id stays over all tries: an order that arrived and was not answered is not given twice.
    """
    connection: Connection = click.get_current_context().find_root().obj
    try:
        Credentials(connection.files).check(connection.servers)
        metadata = [("x-request-id", uuid.uuid4().hex), *_token(connection)]
    except BadCredentials as wrong:
        complain(str(wrong))
        sys.exit(EXIT_REFUSED)
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
    ca, key, cert = (_read(name) for name in (connection.files.ca, connection.files.key, connection.files.cert))
    if not connection.files.tls:
        return grpc.insecure_channel(target)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(ca, key, cert))


def _read(name: str) -> bytes | None:
    return Path(name).read_bytes() if name else None


def _token(connection: Connection) -> list[tuple[str, str]]:
    token = _read(connection.files.token_file)
    return [("authorization", f"Bearer {token.decode().strip()}")] if token else []


def _end(error: grpc.RpcError | None) -> int:
    """Says what went wrong; returns the exit code."""
    if error is None:
        complain("no server: give --server HOST:PORT")
        return EXIT_UNREACHABLE
    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        complain(f"no server responds: {error.details()}")
        return EXIT_UNREACHABLE
    complain(error.details() or code.name)
    return EXIT_NOT_FOUND if code is grpc.StatusCode.NOT_FOUND else EXIT_REFUSED


def whom_to_ask(given: Sequence[str], context_name: str) -> tuple[list[str], CredentialFiles]:
    """Servers, and the credentials that belong to them. Those of the environment are not for whom a context names."""
    from_environment = os.environ.get("WALLE_SERVER", "")
    context = None if not context_name and (given or from_environment) else _context(context_name)
    if context is None:
        text = ",".join(given) or from_environment or f"127.0.0.1:{DEFAULT_PORT}"
        return _addresses(text), CredentialFiles.of_environment(prefix="WALLE_")
    return _addresses(",".join(given or context.walle)), context.credentials


def _context(name: str) -> Context | None:
    """The one named; else the current one, if it knows a Wall-E."""
    try:
        config = load(config_path())
        found = config.context(name) if name or config.current else None
    except BadConfig as error:
        raise click.UsageError(str(error)) from None
    if found is None or found.walle:
        return found
    if name:
        raise click.UsageError(f"{config.path}: context {name} names no servers of Wall-E: add `walle: [HOST:PORT]`")
    return None


def _addresses(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
