"""Servers that say who they are, one for each name: `listening NAME PORT`, at one port of 127.0.0.1, 127.0.0.2, ...

The one named `many` has a port of its own at every address.
`Who` answers the name, `Served` how many calls of `Who` this server has answered.

python -m tests.judges.who_server NAME...
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue


async def serve(names: list[str]) -> None:
    """Until it is ended."""
    servers, port, served = [], 0, Counter[str]()
    for number, name in enumerate(names, 1):

        async def who(_request: Empty, _context: Any, name: str = name) -> StringValue:
            served[name] += 1
            return StringValue(value=name)

        async def count(_request: Empty, _context: Any, name: str = name) -> StringValue:
            return StringValue(value=str(served[name]))

        handlers = {
            method: grpc.unary_unary_rpc_method_handler(answer, Empty.FromString, StringValue.SerializeToString)
            for method, answer in (("Who", who), ("Served", count))
        }
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("judged.Who", handlers)])
        found = server.add_insecure_port("0.0.0.0:0" if name == "many" else f"127.0.0.{number}:{port}")
        await server.start()
        print(f"listening {name} {found}", flush=True)
        port = port or found
        servers.append(server)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
