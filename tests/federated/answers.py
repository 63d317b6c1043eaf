"""What tests of a gateway ask of its answers."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb


def ids(answer: pb.FindInstancesResponse) -> list[tuple[str, str]]:
    """Id and cluster of each instance, in order."""
    return [(i.meta.id, i.meta.cluster) for i in answer.instances]


def errors(sources: Iterable[pb.Source]) -> dict[str, str]:
    """What is wrong with each location."""
    return {source.cluster: source.error for source in sources}


async def refused(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    """The error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value
