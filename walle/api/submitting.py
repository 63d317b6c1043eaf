"""Stores orders, and waits until they took effect."""

from __future__ import annotations

from typing import Final

from serving.calls.methods import Call
from serving.rights.stored import encode_access
from walle.process.automaton import WalleSupervisor
from walle.reach import who
from wallepb.v1.service_pb2 import Order

_DEFAULT_TIMEOUT_S: Final = 10.0


async def submit(walle: WalleSupervisor, subject: str, order: Order, call: Call) -> None:
    """Raises ServiceError."""
    order.by, order.access = who(call), encode_access(call.access)
    clock = walle.controller.clock
    timeout_s = call.deadline - clock.now() if call.deadline is not None else _DEFAULT_TIMEOUT_S
    await walle.orders.submit(subject, order, request_id=call.request_id, by=order.by, timeout_s=timeout_s)
