"""What a lookup costs in files and functions of ours: `python -m tests.support.lookup_path` prints them in order.

The lookup is answered from a list that the replica keeps joined, over gRPC, from the first byte to the last. Several
are traced, and the shortest counts: the others have a ping or a refresh of something kept in them.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import grpc

from serving import compiled
from serving.clock import SystemClock

ROOT: Final = Path(__file__).resolve().parents[2]
_SERVERS: Final = ("hq", "hqapi", "serving", "store")
_TRACES: Final = 10
_INSTANCES: Final = 20


class Step(NamedTuple):
    """A function that was called, at its first call."""

    file: str
    function: str


class Tracer:
    """Collects the functions of this tree that run in the current thread, but for tests and clients."""

    def __init__(self) -> None:
        self._seen: dict[CodeType, None] = {}

    def __enter__(self) -> Tracer:
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def steps(self) -> list[Step]:
        found = []
        for code in self._seen:
            package, _, _ = (file := code.co_filename.removeprefix(f"{ROOT}/")).partition("/")
            # A comprehension is a function of its own up to Python 3.11.
            if package in _SERVERS and not code.co_name.endswith("comp>"):
                found.append(Step(file, code.co_qualname))
        return found

    def _on_event(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            self._seen.setdefault(frame.f_code)


class _PausedClock(SystemClock):
    """Stands still while a lookup is traced: nothing that is kept for milliseconds becomes old in between."""

    paused_at: float | None = None

    def now(self) -> float:
        return super().now() if self.paused_at is None else self.paused_at


async def trace_lookup() -> list[Step]:
    """The functions of one lookup of twenty instances, in the order of their first calls."""
    from hqpb.v1 import service_pb2 as pb
    from hqpb.v1.service_stubs import InstanceServiceStub
    from tests.support.rights_requests import create
    from tests.support.secured import served

    clock = _PausedClock()
    async with served(None, clock) as replica, grpc.aio.insecure_channel(replica.addresses.grpc) as channel:
        stub = InstanceServiceStub(channel)
        for number in range(_INSTANCES):
            await stub.CreateInstance(create(f"web-{number}", "web"))
        request = pb.FindInstancesRequest(filter=pb.InstanceFilter(service_id=["web"]))
        traces = []
        for _ in range(_TRACES):
            clock.paused_at = clock.now()
            await stub.FindInstances(request)  # so that the source of answers was just made
            with Tracer() as tracer:
                answer = await stub.FindInstances(request)
            assert len(answer.instances) == _INSTANCES
            traces.append(tracer.steps())
            clock.paused_at = None
    return min(traces, key=len)


def main() -> None:
    """Print every step, then how many files and functions there are."""
    if compiled.form() == "compiled":
        sys.exit("compiled functions cannot be traced: set SERVING_INTERPRETED=1")
    steps = asyncio.run(trace_lookup())
    for step in steps:
        print(f"{step.file:40} {step.function}")
    print(f"{len({step.file for step in steps})} files, {len(steps)} functions")


if __name__ == "__main__":
    main()
