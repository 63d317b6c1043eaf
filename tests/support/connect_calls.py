"""Calls of hq.v1.InstanceService as somebody else's Connect client describes them."""

from __future__ import annotations

from typing import TypeVar

from connectrpc.method import IdempotencyLevel, MethodInfo
from google.protobuf.message import Message

Asked = TypeVar("Asked", bound=Message)
Told = TypeVar("Told", bound=Message)


def method(name: str, request: type[Asked], answer: type[Told]) -> MethodInfo[Asked, Told]:
    """A call by its name."""
    return MethodInfo(
        name=name,
        service_name="hq.v1.InstanceService",
        input=request,
        output=answer,
        idempotency_level=IdempotencyLevel.UNKNOWN,
    )
