"""Print a service's endpoints and every change: python examples/discovery/follow.py SERVICE PORT [DIRECTORY]

With a directory the last good list is kept there: start it again while HQ is away and it still knows them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from hqclient import Discovery, NotReady

PATIENCE_S = 3.0


async def main(name: str, port: str, directory: str | None = None) -> None:
    servers = os.environ.get("HQ_SERVER", "127.0.0.1:7071").split(",")
    async with Discovery(servers, state_dir=directory).service(name, port=port) as service:
        try:
            await service.ready(PATIENCE_S)
        except NotReady as error:
            print(f"still waiting: {error}", file=sys.stderr, flush=True)
        async for changes in service.changes():
            if changes.resync:
                print(f"! start over: {changes.resync}")
            for endpoint in changes.added:
                print(f"+ {endpoint.address} {endpoint.instance_id} {endpoint.revision} {in_order(endpoint.labels)}")
            for before, endpoint in changes.changed:
                print(f"~ {before.address} -> {endpoint.address} {endpoint.revision} {in_order(endpoint.labels)}")
            for endpoint in changes.removed:
                print(f"- {endpoint.address} {endpoint.instance_id}")
            print(f"= {len(service.endpoints)} endpoints, {service.source.name}, {service.age_s:.1f} s old", flush=True)


def in_order(labels: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: follow.py SERVICE PORT [DIRECTORY]; PORT is a port's name, e.g. http")
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
