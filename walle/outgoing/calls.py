"""HTTP to other systems, and to management controllers, which may only be where an entry says."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

import httpx

from control.outgoing import HttpReply, OutgoingCallFailed, OutgoingHttp
from walle.outgoing.destinations import Controllers, IpAddress, Url, plain_ip


async def resolve(host: str, port: int) -> IpAddress:
    """The first address of a name. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return plain_ip(ipaddress.ip_address(found[0][4][0]))


class OutgoingCalls(OutgoingHttp):
    """HTTP, also to management controllers, whose addresses callers of the API choose."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        resolve: Callable[[str, int], Awaitable[IpAddress]] = resolve,
    ) -> None:
        """`transport`: instead of connections, for tests."""
        super().__init__(transport)
        self._resolve = resolve

    async def send_to_controller(
        self, method: str, base: Url, path: str, entry: Controllers, *, body: object = None, timeout_s: float
    ) -> HttpReply:
        """Like `send`, to a management controller that an entry covers. Raises OutgoingCallFailed.

        A name is resolved once, and the address that was checked is called.
        """
        headers, extensions, url = entry.headers(), {}, base
        if base.address.ip is None:
            try:
                async with asyncio.timeout(timeout_s):
                    ip = await self._resolve(base.address.host, base.port)
            except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError
                raise OutgoingCallFailed(
                    f"{base.address.host} cannot be resolved: {str(error) or 'no answer'}"
                ) from error
            if not entry.may_resolve_to(base.address.host, ip):
                raise OutgoingCallFailed(
                    f"{base.address.host} is {ip}, an address that an entry must name: it is not called"
                )
            headers["host"], extensions = str(base.address), {"sni_hostname": base.address.host}
            url = base._replace(address=base.address._replace(host=str(ip)))
        return await self.send(
            method,
            f"{url}{path}",
            body=body,
            headers=headers,
            tls=entry.tls,
            timeout_s=timeout_s,
            extensions=extensions,
        )
