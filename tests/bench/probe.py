"""A well-behaved client in a process of its own: `python -m tests.bench.probe` with its task as JSON on standard input.

It makes one call over gRPC at a steady rate, whatever becomes of those before, and says as JSON how long each took from
the moment at which it was due, and which failed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import grpc
import uvloop

from tests.bench import raw
from tests.bench.machine import ROOT

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Probing:
    """The task. `body` in hexadecimal digits, `bearer` is a token."""

    address: str
    path: str
    body: str
    bearer: str
    rate: float
    seconds: float


@dataclass(slots=True)
class Found:
    """What came of it; `failed` by status code."""

    ms: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, said: str) -> Self:
        return cls(**json.loads(said))


async def probe(task: Probing) -> Found:
    """Make the calls, one after another by the clock."""
    found, failed = Found(), Counter[str]()
    body, metadata = bytes.fromhex(task.body), (("authorization", f"Bearer {task.bearer}"),)
    async with raw.channel(task.address) as channel:
        call: Any = raw.unary(channel, task.path)

        async def once(due: float) -> None:
            try:
                await call(body, metadata=metadata, timeout=_PATIENCE_S)
                found.ms.append((time.perf_counter() - due) * 1000)
            except grpc.aio.AioRpcError as error:
                failed[error.code().name] += 1

        await once(time.perf_counter())  # connects
        found.ms.clear()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as calls:
            for number in range(round(task.rate * task.seconds)):
                due = began + number / task.rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                calls.create_task(once(due))
    found.failed = dict(failed)
    return found


async def probing(task: Probing) -> Found:
    """The same in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.probe"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(task.seconds + 2 * _PATIENCE_S):
            said, _ = await process.communicate(json.dumps(asdict(task)).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Found.of(said.decode())


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(probe(Probing(**json.load(sys.stdin)))))))
