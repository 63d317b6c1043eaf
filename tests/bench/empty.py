"""The empty handlers: what Python offers for serving, answering with constant bytes.

Run as `python -m tests.bench.empty DIR [CERT KEY]`. Each file NAME in DIR is served at gRPC /empty.E/NAME and at HTTP
/NAME; with a certificate, gRPC has TLS. gRPC has HQ's limits; the ASGI application reads the body and does nothing
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

from serving.limiting.limits import Limits

_LIMITS = Limits()
# With HQ's own limits, where gRPC has them.
_OPTIONS = [
    ("grpc.max_receive_message_length", _LIMITS.max_request_bytes),
    ("grpc.max_send_message_length", _LIMITS.max_response_bytes),
    ("grpc.max_metadata_size", _LIMITS.max_header_bytes),
    ("grpc.absolute_max_metadata_size", _LIMITS.max_header_bytes * 2),
    ("grpc.http2.bdp_probe", 0),  # else gRPC accepts and keeps MiBs of what a call sends after its request
    ("grpc.max_concurrent_streams", _LIMITS.max_streams_per_connection),
    ("grpc.max_allowed_incoming_connections", _LIMITS.max_connections),
    ("grpc.keepalive_time_ms", round(_LIMITS.ping_interval_s * 1000)),
    ("grpc.keepalive_timeout_ms", round(_LIMITS.ping_timeout_s * 1000)),
    ("grpc.keepalive_permit_without_calls", 1),
]

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
    server = grpc.aio.server(options=_OPTIONS)
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
