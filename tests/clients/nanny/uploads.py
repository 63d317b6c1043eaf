"""nanny as a process of its own, descriptions to give it, and what an installation holds afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from hqclient.client import STRONG, Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.process import Outcome, ended, environment

SECRET = {"name": "key", "provider": "vault", "id": "web/key", "file": {"path": "key", "mode": 256}}


async def start(*arguments: str, server: str = "", **more: str) -> asyncio.subprocess.Process:
    """A nanny that runs. End it, or await `ended`."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nannyctl.main"),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment(server), "NANNY_CONFIG": "", "HOME": os.devnull, **more},
    )


async def nanny(*arguments: str, server: str = "", **more: str) -> Outcome:
    """Run nanny to its end."""
    return await ended(await start(*arguments, server=server, **more))


def description(count: int, *revisions: str, secrets: bool = False, **more: Any) -> dict[str, Any]:
    """`count` instances on ten nodes; the last revision is READY."""
    instances = [
        {"id": f"web-{n:04}", "node": f"node-{n % 10}", "allocation": {"ports": {"http": 8000 + n}}}
        for n in range(count)
    ]
    defined: list[dict[str, Any]] = [
        {"id": one, "container": [{"name": "web", "command": ["serve", one]}]} for one in revisions
    ]
    for revision in defined if secrets else ():
        revision["secret"] = [SECRET]
    whole = {
        "service": "web",
        "engine": "demo",
        "allocator": "by-hand",
        "resources": {"cpuMillicores": 500, "ports": ["http"]},
        "allocation": {"cpuMillicores": 500},
        "instances": instances,
        "revisions": defined,
        "ready": revisions[-1],
    }
    return {**whole, **more}


def written(folder: Path, name: str, value: dict[str, Any]) -> str:
    """The path of a description."""
    path = folder / name
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    return str(path)


async def count(client: Client) -> int:
    answer = await client.count(pb.InstanceFilter(service_id=["web"]), read=STRONG)
    return answer.groups[0].total if answer.groups else 0


async def held_by(client: Client) -> dict[str, model.Instance]:
    """By id, every instance."""
    pages = client.find(read=STRONG)
    return {instance.meta.id: instance async for page in pages for instance in page.instances}


def summary(instance: model.Instance) -> dict[str, Any]:
    """What a description can say of an instance."""
    spec = instance.spec
    return {
        "labels": dict(instance.meta.labels),
        "node": spec.node_name,
        "cpu": (spec.resource_request.cpu_millicores, spec.allocation.cpu_millicores),
        "ports": {port.name: port.number for port in spec.allocation.port},
        "revisions": {r.id: (r.target, tuple(r.container[0].command), r.secret_count) for r in spec.revision},
    }


def expected(number: int, *revisions: str, secrets: int = 0) -> dict[str, Any]:
    """The summary of an instance of `description`."""
    ready = revisions[-1]
    other = model.REVISION_TARGET_INSTALLED
    targets = {one: model.REVISION_TARGET_READY if one == ready else other for one in revisions}
    return {
        "labels": {"engine": "demo", "allocator": "by-hand"},
        "node": f"node-{number % 10}",
        "cpu": (500, 500),
        "ports": {"http": 8000 + number},
        "revisions": {one: (target, ("serve", one), secrets) for one, target in targets.items()},
    }
