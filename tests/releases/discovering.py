"""A user of discovery, as a program: prints where the endpoints of service `svc` are from, and which, as JSON.

The arguments: a replica's address and a directory for its files. It is started from either version's tree.
"""

from __future__ import annotations

import asyncio
import json
import sys

from hqclient import Discovery


async def main(replica: str, state_dir: str) -> None:
    found = Discovery([replica], state_dir=state_dir)
    async with found.service("svc", port="http") as service:
        await service.ready(20.0)
        ids = sorted(endpoint.instance_id for endpoint in service.endpoints)
        print(json.dumps({"from": service.source.name, "ids": ids}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
