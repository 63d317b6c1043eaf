"""A kind of settings that people name and a controller keeps: budgets, windows. A row here is its server half. Pure.

Messages and orders are found by the kind's name, so they are called alike: `Budget {name, service}`, PutBudgetRequest
`{budget}`, DeleteBudgetRequest `{name}`, and `put_budget`, `delete_budget` in the orders that the controller stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from control.change import Change
from control.errors import Refused
from control.records import Kind
from serving.errors import OutOfReach, Overloaded
from serving.rights.access import OUTSIDE, Access

R = TypeVar("R", bound=Message)
RETRY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class SettingKind(Generic[R]):
    """A kind of setting as the calls, the orders and the checks of rights need it.

    Attributes:
        stored: its records: what was set, with `by` and `at_ms`.
        message: as the API has it.
        check: raises InvalidRequest, naming the field of the message that is wrong.
        absent: how the message for a name that does not exist begins; the name follows.
        part: the field of a record that is the message; empty: the record has the message's own fields.
        most: how many one service may have, as every decision looks at all of them.
    """

    stored: Kind[R]
    message: type[Message]
    check: Callable[[Any], object]
    absent: str
    part: str = ""
    most: int = 100

    @property
    def name(self) -> str:
        """The kind's name in fields of requests and orders."""
        return self.stored.name

    def record(self, message: Message, by: str, at_ms: int) -> R:
        """Make the record that is stored of a message."""
        if self.part:
            return self.stored.message(**{self.part: message}, by=by, at_ms=at_ms)
        fields = {field.name: value for field, value in message.ListFields()}
        return self.stored.message(**fields, by=by, at_ms=at_ms)

    def view(self, record: R) -> Any:
        """The message as it was set."""
        if self.part:
            return getattr(record, self.part)
        described: Any = self.message.DESCRIPTOR
        known = described.fields_by_name
        return self.message(**{field.name: value for field, value in record.ListFields() if field.name in known})

    def handle(self, change: Change, order: Any, check_author: Callable[[Callable[[Access], object]], None]) -> bool:
        """Carry out an order to put or delete a setting; False: the order is about something else.

        Orders to put settings of the same service must have the same subject, else two could together pass its bound.
        `check_author` raises Refused unless a check passes with the rights of the order's author, then and now.
        """
        which = order.WhichOneof("order")
        if which not in (f"put_{self.name}", f"delete_{self.name}"):
            return False
        value = getattr(order, which)
        new = self.view(value) if which.startswith("put_") else None
        name = str(getattr(new or value, "name", value))
        before = change.get(self.stored, name)
        check_author(lambda access: self.check_reach(name, new, before, access))
        if new is not None:
            try:
                self.check_room(new, change.records(self.stored))
            except Overloaded as error:
                raise Refused(str(error), error.code) from None
            change.put(self.stored, name, value)
        elif before is not None:
            change.delete(self.stored, name)
        else:
            raise Refused(f"{self.absent} {name[:100]}", "NOT_FOUND")
        return True

    def check_room(self, new: Any, records: Mapping[str, R]) -> None:
        """Raises Overloaded: the setting's service has `most` already. Admins' settings for several services pass."""
        before = records.get(new.name)
        if not new.service or (before is not None and self.view(before).service == new.service):
            return
        count = sum(self.view(one).service == new.service for one in records.values())
        if count >= self.most:
            has = f"service {new.service} has {count} already: delete some"
            raise Overloaded(f"{self.name} {new.name}: {has}", RETRY_S)

    def check_reach(self, name: str, new: Any, before: R | None, access: Access) -> None:
        """Check that the services of the old and the new setting are within reach; an empty one stands for several.

        Args:
            new: None: the setting is to be deleted; then a caller without access gets "not found".

        Raises PermissionDenied, OutOfReach.
        """
        old = [self.view(before).service] if before is not None else []
        if new is None:
            if old and not access.covers_service(old[0]):
                raise OutOfReach(f"{self.absent} {name[:100]}", key=name)
            return
        for service in dict.fromkeys([new.service, *old]):
            if not access.is_unlimited and not (service and access.covers_service(service)):
                access.deny(f"{self.name} {name}", key=name, scope=f"{OUTSIDE} (its service)")
