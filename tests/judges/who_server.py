"""Servers that say who they are, one for each name: `listening NAME PORT`, at one port of 127.0.0.1, 127.0.0.2, ...

python -m tests.judges.who_server NAME...
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue


async def serve(names: list[str]) -> None:
    """Until it is ended."""
    servers, port = [], 0
    for number, name in enumerate(names, 1):

        async def who(_request: Empty, _context: Any, name: str = name) -> StringValue:
            return StringValue(value=name)

        handler = grpc.unary_unary_rpc_method_handler(who, Empty.FromString, StringValue.SerializeToString)
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("judged.Who", {"Who": handler})])
        port = server.add_insecure_port(f"127.0.0.{number}:{port}")
        await server.start()
        print(f"listening {name} {port}", flush=True)
        servers.append(server)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
