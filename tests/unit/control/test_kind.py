"""A new kind of settings takes one row, from which its calls, orders and checks of rights are made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from control import Change, Kind
from control.kind import SettingKind
from control.kind_api import KindApi
from serving.calls.methods import Call, ServiceTable, UnaryMethod
from serving.errors import InvalidRequest, NotFound, OutOfReach, Overloaded, PermissionDenied, invalid
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import BUDGET, Role
from store.memory import MemoryStore
from tests.support.controllers import Books
from tests.support.virtual_time import VirtualClock, in_virtual_time

_FIELD: Final = descriptor_pb2.FieldDescriptorProto


def messages(**fields_by_message: str) -> Mapping[str, Any]:
    """Classes of messages in one file: `Lock="name service"`; a field `put_lock:StoredLock` is a message's."""
    file = descriptor_pb2.FileDescriptorProto(name="trial.proto", package="trial", syntax="proto3")
    for name, fields in fields_by_message.items():
        made = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            word, _, of = field.partition(":")
            one = made.field.add(name=word, number=number, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
            if of == "int64":
                one.type = _FIELD.TYPE_INT64
            elif of:
                one.type, one.type_name = _FIELD.TYPE_MESSAGE, f".trial.{of}"
            if word.startswith(("put_", "delete_")):
                one.oneof_index = 0
                if not made.oneof_decl:
                    made.oneof_decl.add(name="order")
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"trial.{name}")) for name in fields_by_message}


PB: Final = messages(
    Lock="name service holder",
    StoredLock="name service holder by at_ms:int64",
    PutLockRequest="lock:Lock",
    PutLockResponse="lock:Lock",
    DeleteLockRequest="name",
    DeleteLockResponse="",
    Order="access put_lock:StoredLock delete_lock",
)


def check_lock(lock: Any) -> None:
    if not lock.holder:
        raise invalid("lock.holder", "is empty: set it")


LOCK: Final = SettingKind(Kind("lock", PB["StoredLock"]), PB["Lock"], check_lock, "there is no lock", most=3)


class Locks(Books):
    """A controller with this kind, over a store in memory."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.locks = self.controller.records(LOCK.stored)
        events = self.controller.events("order", PB["Order"], self.handle_order)

        async def submit(key: str, order: Any, by: str) -> None:
            await events.submit(key, order, by=by, timeout_s=30.0)

        api = KindApi(LOCK, self.locks, PB["Order"], submit, VirtualClock())
        rows = api.methods(ServiceTable("trial.LockService"), BUDGET)
        self.calls = {one.path.rpartition("/")[2]: one for one in rows if isinstance(one, UnaryMethod)}

    def handle_order(self, change: Change, _: str, order: Any) -> None:
        assert LOCK.handle(change, order, partial(self.controller.rights.check, order.access, BUDGET))

    async def call(self, name: str, access: Access, /, **fields: Any) -> Any:
        """Call like a transport: check first, then run."""
        method, request = self.calls[name], PB[f"{name}Request"](**fields)
        assert method.reach is not None
        assert method.reach.check is not None
        method.reach.check(request, access)
        answer: Any = await method.run(request, Call(access=access))  # type: ignore[misc]
        return PB[f"{name}Response"].FromString(answer.proto())


def uploader(service: str) -> Access:
    identity = Identity(f"{service}-team", ProofKind.TOKEN, float("inf"))
    return Access(identity, BUDGET, {Role.UPLOADER: (Scope(services=Patterns([service])),)})


@in_virtual_time
async def test_a_lock_is_set_with_its_author_replaced_and_deleted() -> None:
    async with Locks() as locks:
        for holder in ("ann", "bob"):
            lock = {"name": "web", "service": "web", "holder": holder}
            assert (await locks.call("PutLock", uploader("web"), lock=lock)).lock.holder == holder
            assert (locks.locks["web"].holder, locks.locks["web"].by) == (holder, "web-team")
        await locks.call("DeleteLock", uploader("web"), name="web")
        assert dict(locks.locks) == {}
        with pytest.raises(NotFound, match="there is no lock web"):
            await locks.call("DeleteLock", uploader("web"), name="web")


@in_virtual_time
async def test_an_invalid_lock_is_refused_by_its_field() -> None:
    async with Locks() as locks:
        with pytest.raises(InvalidRequest, match=r"lock\.holder: is empty"):
            await locks.call("PutLock", uploader("web"), lock={"name": "web", "service": "web"})


@in_virtual_time
async def test_each_service_has_a_limit_of_locks_of_its_own() -> None:
    async with Locks() as locks:
        for number in range(LOCK.most):
            await locks.call("PutLock", uploader("web"), lock={"name": f"w{number}", "service": "web", "holder": "ann"})
        one_more = {"name": "more", "service": "web", "holder": "ann"}
        with pytest.raises(Overloaded, match="lock more: service web has 3 already: delete some"):
            await locks.call("PutLock", uploader("web"), lock=one_more)
        await locks.call("PutLock", uploader("web"), lock={**one_more, "name": "w1"})
        await locks.call("PutLock", uploader("mail"), lock={**one_more, "service": "mail"})
        await locks.call("DeleteLock", uploader("web"), name="w0")
        await locks.call("PutLock", uploader("web"), lock={**one_more, "name": "w9"})


@in_virtual_time
async def test_a_lock_does_not_move_to_a_service_at_its_limit() -> None:
    async with Locks() as locks:
        both = uploader("*")
        for name in ("w0", "w1", "w2"):
            await locks.call("PutLock", both, lock={"name": name, "service": "web", "holder": "ann"})
        await locks.call("PutLock", both, lock={"name": "m0", "service": "mail", "holder": "ann"})
        with pytest.raises(Overloaded, match="lock m0: service web has 3 already: delete some"):
            await locks.call("PutLock", both, lock={"name": "m0", "service": "web", "holder": "ann"})
        assert locks.locks["m0"].service == "mail"


@in_virtual_time
async def test_locks_put_at_the_same_moment_do_not_exceed_the_limit() -> None:
    """Each is checked when it is applied: when they were sent, there was room for any one of them."""
    async with Locks() as locks:
        puts = [
            locks.call("PutLock", uploader("web"), lock={"name": f"w{number}", "service": "web", "holder": "ann"})
            for number in range(20)
        ]
        refused = [one for one in await asyncio.gather(*puts, return_exceptions=True) if isinstance(one, Exception)]
        assert {type(error) for error in refused} == {Overloaded}
        assert "service web has 3 already: delete some" in str(refused[0])
        assert len(locks.locks) == LOCK.most


@in_virtual_time
async def test_only_uploaders_of_its_service_change_a_lock() -> None:
    async with Locks() as locks:
        mine = {"name": "web", "service": "web", "holder": "ann"}
        await locks.call("PutLock", uploader("web"), lock=mine)
        for foreign in (mine, {**mine, "service": "mail"}, {**mine, "service": ""}):
            with pytest.raises(PermissionDenied, match="lock web"):
                await locks.call("PutLock", uploader("mail"), lock=foreign)
        with pytest.raises(OutOfReach, match="there is no lock web"):
            await locks.call("DeleteLock", uploader("mail"), name="web")
        assert locks.locks["web"].holder == "ann"
