"""Stores orders, and waits until they took effect."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from serving.calls.methods import Call
from serving.encoding.jsonio import refuse_unknown_numbers
from serving.errors import invalid
from serving.rights.stored import encode_access
from walle.process.automaton import WalleSupervisor
from walle.reach import who
from wallepb.v1.service_pb2 import Order

_DEFAULT_TIMEOUT_S: Final = 10.0
_LONGEST: Final = {"reason": 1_000, "ticket": 1_000, "switch": 100, "dc": 100, "group_id": 100}
"""Bounds in bytes on what is stored of an order as it came: a record has 512 KiB for all orders."""


async def submit(walle: WalleSupervisor, subject: str, order: Order, call: Call) -> None:
    """Store an order, and return once it took effect. Raises ServiceError."""
    what = order.WhichOneof("what")
    if what is not None:
        _check_kept(getattr(order, what))
    order.by, order.access = who(call), encode_access(call.access)
    clock = walle.controller.clock
    timeout_s = call.deadline - clock.now() if call.deadline is not None else _DEFAULT_TIMEOUT_S
    await walle.orders.submit(subject, order, request_id=call.request_id, by=order.by, timeout_s=timeout_s)


def _check_kept(request: Message) -> None:
    """Raises InvalidRequest: what would be stored is too long, or has a number that names nothing."""
    refuse_unknown_numbers(request)
    for name, most in _LONGEST.items():
        size = len(getattr(request, name, "").encode())
        if size > most:
            raise invalid(name, f"is {size} bytes; the limit is {most}")
