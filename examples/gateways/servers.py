"""Servers to be found: gRPC with the standard health service on each of these ports.

python examples/gateways/servers.py PORT...
"""

from __future__ import annotations

import asyncio
import sys

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


async def main() -> None:
    """Until Ctrl-C."""
    servers = []
    for port in sys.argv[1:]:
        server = grpc.aio.server()
        healthy = health.aio.HealthServicer()
        await healthy.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        servers.append(server)
    print(f"serving on {', '.join(sys.argv[1:])}", flush=True)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
