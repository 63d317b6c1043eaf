"""Channels with the caller's credentials: TLS, a certificate, a ticket."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from clients.hqctl.config import Credentials
from clients.hqctl.naming import CLUSTER_HEADER
from clients.links import CHANNEL_OPTIONS, ChannelFactory


class BadCredentials(Exception):
    """A file of credentials cannot be used; str() says which and why."""


def channel_factory(credentials: Credentials, *, verbose: bool) -> ChannelFactory:
    """How to open a channel to an address. Raises BadCredentials."""
    tls = _tls(credentials)

    def open_channel(address: str, interceptors: Sequence[Any] = ()) -> grpc.aio.Channel:
        if tls is None:
            return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS, interceptors=interceptors)
        return grpc.aio.secure_channel(address, tls, options=CHANNEL_OPTIONS, interceptors=interceptors)

    if not verbose:
        return open_channel
    from clients.hqctl.calling import telling

    return telling(open_channel)


def metadata_source(credentials: Credentials, cluster: str) -> Callable[[], Sequence[tuple[str, str]]]:
    """What is sent with each call. The ticket is read anew each time: somebody renews it."""
    named = ((CLUSTER_HEADER, cluster),) if cluster else ()
    if not credentials.ticket_file:
        return lambda: named

    def metadata() -> Sequence[tuple[str, str]]:
        ticket = _read(credentials.ticket_file).decode().strip()
        return (*named, ("authorization", f"Bearer {ticket}"))

    metadata()  # a file that cannot be read is told before the first call
    return metadata


def _tls(credentials: Credentials) -> grpc.ChannelCredentials | None:
    if not credentials.ca and not credentials.cert:
        return None
    return grpc.ssl_channel_credentials(
        _read(credentials.ca) if credentials.ca else None,
        _read(credentials.key) if credentials.key else None,
        _read(credentials.cert) if credentials.cert else None,
    )


def _read(name: str) -> bytes:
    try:
        return Path(os.path.expanduser(name)).read_bytes()  # noqa: PTH111
    except OSError as error:
        raise BadCredentials(f"{name}: cannot be read: {error.strerror}") from None
