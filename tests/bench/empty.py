"""The empty handlers: the same stacks as HQ's old ones, answering with constant bytes.

Run as `python -m tests.bench.empty DIR [CERT KEY]`. Each file NAME in DIR is served at gRPC /empty.E/NAME and at HTTP
/NAME; with a certificate, gRPC has TLS. gRPC has HQ's own options; the ASGI application reads the body and does nothing
else.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import grpc
import uvicorn
import uvloop

from serving.grpc.limits import options_of
from serving.limiting.limits import Limits

_Handler = Callable[[bytes, Any], Awaitable[bytes]]


def _grpc_handler(constant: bytes) -> _Handler:
    async def handle(request: bytes, context: Any) -> bytes:
        return constant

    return handle


def _application(bodies: dict[str, bytes]) -> Any:
    answers = {"/" + name: body for name, body in bodies.items()}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        body = answers[scope["path"]]
        kind = b"application/json" if body[:1] == b"{" else b"application/proto"
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return application


async def serve(directory: Path, cert: str = "", key: str = "") -> None:
    """Serve for ever; say where on standard output."""
    bodies = {path.name: path.read_bytes() for path in directory.iterdir()}
    server = grpc.aio.server(options=options_of(Limits()))
    methods: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(cast("Any", _grpc_handler(body))) for name, body in bodies.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("empty.E", methods),))
    if cert:
        pair = Path(key).read_bytes(), Path(cert).read_bytes()
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    config = uvicorn.Config(
        _application(bodies),
        host="127.0.0.1",
        port=0,
        http="httptools",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    web = uvicorn.Server(config)
    serving = asyncio.create_task(web.serve())
    while not web.started:
        await asyncio.sleep(0.01)
    http_port = web.servers[0].sockets[0].getsockname()[1]
    print(f"listening: gRPC 127.0.0.1:{port}, HTTP 127.0.0.1:{http_port}", flush=True)
    await serving


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), *sys.argv[2:]))
