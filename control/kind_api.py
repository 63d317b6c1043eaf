"""The calls that set and delete settings of a kind, made from its row in the controller's table of kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from control.errors import EventRefused
from control.kind import RETRY_S, R, SettingKind
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.clock import Clock
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound, Overloaded
from serving.rights.access import Access
from serving.rights.reach import Of, checked_reach
from serving.rights.rules import Rule
from serving.rights.stored import encode_access

Submit = Callable[[str, Any, str], Awaitable[None]]


class KindApi(Generic[R]):
    """Put and Delete of one kind.

    Args:
        records: what is stored, by name.
        order: class of the controller's orders.
        submit: called with a key, an order and its author, returns when it took effect. Orders with the same key, which
            is the service's name, are carried out one after the other.
    """

    def __init__(
        self, kind: SettingKind[R], records: Mapping[str, R], order: type[Message], submit: Submit, clock: Clock
    ) -> None:
        self._kind, self._records, self._order, self._submit, self._clock = kind, records, order, submit, clock
        described: Any = kind.message.DESCRIPTOR
        self._word, beside = described.name, described.file.message_types_by_name
        names = (f"{verb}{self._word}{part}" for verb in ("Put", "Delete") for part in ("Request", "Response"))
        self._classes = {name: GetMessageClass(beside[name]) for name in names}

    def methods(self, service: ServiceTable, rule: Rule) -> list[Method]:
        """The rows of both calls, under a rule."""
        put, delete = self._classes[f"Put{self._word}Request"], self._classes[f"Delete{self._word}Request"]
        return [
            service.unary(put, self.put, rule, checked_reach(Of.SERVICE, self._check_put)),
            service.unary(delete, self.delete, rule, checked_reach(Of.SERVICE, self._check_delete)),
        ]

    async def put(self, request: Any, call: Call) -> Answer:
        message = getattr(request, self._kind.name)
        self._kind.check(message)
        self._kind.check_room(message, self._records)
        record = self._kind.record(message, call.access.name, self._clock.wall_ms())
        try:
            await self._give(message.name, record, call)
        except EventRefused as error:
            if error.code != Overloaded.code:
                raise
            raise Overloaded(str(error), RETRY_S) from None
        return MessageAnswer(self._classes[f"Put{self._word}Response"](**{self._kind.name: message}))

    async def delete(self, request: Any, call: Call) -> Answer:
        try:
            await self._give(request.name, None, call)
        except EventRefused as error:
            if error.code != NotFound.code:
                raise
            raise NotFound(str(error)) from None
        return MessageAnswer(self._classes[f"Delete{self._word}Response"]())

    async def _give(self, name: str, record: R | None, call: Call) -> None:
        order: Any = self._order(access=encode_access(call.access))
        if record is not None:
            getattr(order, f"put_{self._kind.name}").CopyFrom(record)
        elif isinstance(getattr(order, f"delete_{self._kind.name}"), str):
            setattr(order, f"delete_{self._kind.name}", name)
        else:
            getattr(order, f"delete_{self._kind.name}").name = name
        known = record or self._records.get(name)
        service = self._kind.view(known).service if known is not None else ""
        await self._submit(service or name, order, call.access.name)

    def _check_put(self, request: Any, access: Access) -> None:
        message = getattr(request, self._kind.name)
        self._kind.check_reach(message.name, message, self._records.get(message.name), access)

    def _check_delete(self, request: Any, access: Access) -> None:
        self._kind.check_reach(request.name, None, self._records.get(request.name), access)
