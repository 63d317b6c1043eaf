"""httpx over discovery: the host of a URL is the name of a service.

    async with Discovery(servers).service("web", port="http") as web:
        async with httpx.AsyncClient(transport=DiscoveryTransport({"web": web})) as client:
            answer = await client.get("http://web/hello")

Run it: python examples/discovery/httpx_transport.py SERVICE PORT PATH

HQ itself does not use httpx; `make setup` brings it, as does `pip install httpx`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

import httpx

from hqclient import Discovery, NoEndpoints, NotReady, Service
from hqclient.discovery.picking import EndpointUse

TRIES = 3


class DiscoveryTransport(httpx.AsyncBaseTransport):
    """Sends each request to an endpoint of the service that its URL names.

    If that cannot be connected to, the request goes to another: nothing was sent, so that does no harm, whatever the
    method. Any other failure is the caller's to judge. The Host header stays the service's name.
    """

    def __init__(self, services: Mapping[str, Service], inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._services = services
        self._inner = inner or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        service = self._services.get(request.url.host)
        if service is None:
            raise httpx.ConnectError(f"no service of this name is followed: {request.url.host}", request=request)
        for _ in range(TRIES - 1):
            try:
                return await self._send(service.take(), request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._send(service.take(), request)

    async def _send(self, use: EndpointUse, request: httpx.Request) -> httpx.Response:
        try:
            there = request.url.copy_with(host=use.endpoint.host, port=use.endpoint.port)
            sent = httpx.Request(
                request.method, there, headers=request.headers, stream=request.stream, extensions=request.extensions
            )
            response = await self._inner.handle_async_request(sent)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            use.done(failed=True)
            raise
        except BaseException:
            use.done()
            raise
        use.done(failed=False)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


async def main(name: str, port: str, path: str) -> None:
    servers = os.environ.get("HQ_SERVER", "127.0.0.1:7071").split(",")
    async with Discovery(servers).service(name, port=port) as service:
        await service.ready(10)
        async with httpx.AsyncClient(transport=DiscoveryTransport({name: service})) as client:
            answer = await client.get(f"http://{name}{path}")
            print(answer.status_code, answer.text, end="")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: httpx_transport.py SERVICE PORT PATH, e.g. shop http /index.html")
    try:
        asyncio.run(main(*sys.argv[1:]))
    except (NoEndpoints, NotReady, httpx.TransportError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
