"""Opens http(s) addresses that a specification names: whoever may deploy a service chooses them. Blocking.

Addresses of this machine and its link (loopback, 169.254.0.0/16 with its metadata services, ...) are opened only where
the operator names them: what listens there often trusts whoever reaches it. A name is resolved once, and the address
that was checked is connected to. Redirects are followed at the same host only, never from https to http.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Any, Final

from instancectl.background import Cancel

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
SILENCE_S: Final = 30.0
_CONNECT_S: Final = 5.0  # connecting cannot be interrupted
_PORTS: Final = {"http": 80, "https": 443}


class NotOpened(OSError):
    """The address may not be opened, so trying again is of no use; the message says why."""


def http_opener(cancel: Cancel, named: Sequence[IpNetwork] = ()) -> urllib.request.OpenerDirector:
    """Opens addresses until `cancel` is set; then the connection is closed and the call fails.

    `named`: special addresses that may be opened, too.
    """
    opener = urllib.request.OpenerDirector()
    connect = partial(_connect, named)
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SameHost(),
        _Http(cancel, connect),
        _Https(cancel, connect),
    ):
        opener.add_handler(handler)
    return opener


def is_special(address: str) -> bool:
    """Whether an address is loopback, unspecified, link-local or multicast."""
    ip = _plain_ip(address)
    return ip.is_loopback or ip.is_unspecified or is_of_the_link(address)


def is_of_the_link(address: str) -> bool:
    """Whether an address is link-local (metadata services are) or multicast."""
    ip = _plain_ip(address)
    return ip.is_link_local or ip.is_multicast


def _plain_ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(address.partition("%")[0])
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip


class _SameHost(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        here, there = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        is_upgrade = (here.scheme, there.scheme) == ("http", "https") and there.port in (None, 443)
        if here.hostname != there.hostname or not (_origin(here) == _origin(there) or is_upgrade):
            # The message does not name the target, which may hold credentials.
            reason = "it redirects to another host, port or scheme, which is not followed: name the final address"
            raise urllib.error.URLError(NotOpened(reason))
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(url: urllib.parse.SplitResult) -> tuple[str, int | None]:
    return url.scheme, url.port or _PORTS.get(url.scheme)


Connect = Callable[..., socket.socket]


class _Http(urllib.request.HTTPHandler):
    def __init__(self, cancel: Cancel, connect: Connect) -> None:
        super().__init__()
        self._cancel, self._connect = cancel, connect

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPConnection, self._cancel, _way(req, self._connect)), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, cancel: Cancel, connect: Connect) -> None:
        super().__init__()
        self._cancel, self._connect = cancel, connect

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPSConnection, self._cancel, _way(req, self._connect)), req)


def _way(req: urllib.request.Request, connect: Connect) -> Connect:
    """How to connect; to a proxy without a check: it is the operator's choice, and decides itself where to connect."""
    is_proxied = req.has_proxy() or getattr(req, "_tunnel_host", None)
    return socket.create_connection if is_proxied else connect


def _connection(kind: Any, cancel: Cancel, create: Connect) -> Any:
    """A class of connections that `cancel` closes."""

    class Connection(kind):  # type: ignore[misc]
        def connect(self) -> None:
            self._create_connection = create
            self.timeout = _CONNECT_S
            super().connect()
            self.sock.settimeout(SILENCE_S)
            cancel.add_interrupt(partial(_cut, self.sock))

    return Connection


def _connect(
    named: Sequence[IpNetwork], address: tuple[str, int], timeout: float, source_address: object = None
) -> socket.socket:
    """Connect to the first address of the host that may be opened and answers. Raises OSError."""
    found = [entry[4][:2] for entry in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)]
    allowed = [one for one in found if not is_special(str(one[0])) or _is_named(str(one[0]), named)]
    if not allowed:
        raise NotOpened(
            "it leads to an address of this machine or its link, which instancectl opens only if it is started with "
            "--fetch-from ADDRESS"
        )
    failure: OSError = OSError("no address")
    for one in allowed:
        try:
            return socket.create_connection((str(one[0]), int(one[1])), timeout)
        except OSError as error:
            failure = error
    raise failure


def _is_named(address: str, named: Sequence[IpNetwork]) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return any(ip.ipv4_mapped in network for network in named)
    return any(ip in network for network in named)


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
