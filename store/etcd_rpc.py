"""One member of an etcd cluster over gRPC, typed. The only file that imports the generated stubs of `aetcd`.

It knows etcd's messages, and nothing of retries or of other members: that is `etcd.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
from aetcd import rpc
from google.protobuf.unknown_fields import UnknownFieldSet

from store.etcd_errors import (
    CLOSED,
    Answered,
    AuthenticationOff,
    Metadata,
    TokenRefused,
    cancelled_by_close,
    raise_for_call,
    raise_for_cancelled_watch,
    raise_for_watch,
)
from store.keys import prefix_end
from store.port import (
    Applied,
    Batch,
    Commit,
    Compare,
    ConditionFailed,
    Disconnected,
    KeyChange,
    MemberStatus,
    Record,
    StorePage,
    Unavailable,
    UnknownOutcome,
    Write,
)
from store.unfragment import Unfragment

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # etcd answers pings that come more often than every 5 s with GOAWAY. A half-open connection ends after 7.5 s.
    ("grpc.keepalive_time_ms", 5_500),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    # Not a pause but how long a try to connect may take: a TLS handshake far away does not fit into 200 ms.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Large reads would starve a watch on the same connection: each channel gets its own.
    ("grpc.use_local_subchannel_pool", 1),
]
_FIELDS = {"created": rpc.Compare.CREATE, "modified": rpc.Compare.MOD, "value": rpc.Compare.VALUE}
_OPERANDS = {"created": "create_revision", "modified": "mod_revision", "value": "value"}
_RELATIONS = {"=": rpc.Compare.EQUAL, "<": rpc.Compare.LESS, ">": rpc.Compare.GREATER}
_OPEN_TIMEOUT_S = 5.0
_ROOT, _EXISTS = "root", "already exists"
_FULL = "alarm:NOSPACE"  # among the errors of a member's status
_DB_SIZE_QUOTA = 12  # StatusResponse.dbSizeQuota, since 3.6; the stubs are older


class MemberConnection:
    """A connection to one member: one channel for calls, another one for watches."""

    def __init__(self, endpoint: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.endpoint = endpoint
        self._calls = _channel(endpoint, credentials)
        self._watches = _channel(endpoint, credentials)
        self._kv = rpc.KVStub(self._calls)
        self._maintenance = rpc.MaintenanceStub(self._calls)

    async def close(self) -> None:
        await self._calls.close()
        await self._watches.close()

    async def authenticate(self, user: str, password: str, timeout_s: float) -> str:
        """A token for later calls."""
        request = rpc.AuthenticateRequest(name=user, password=password)
        try:
            answer = await _answer(rpc.AuthStub(self._calls).Authenticate, request, timeout_s, ())
        except AuthenticationOff:
            raise
        except (Unavailable, TokenRefused) as error:
            kind = Unavailable if type(error) is Unavailable else Answered
            raise kind(f"authentication as user {user} failed: {error}") from error
        return str(answer.token)

    async def commit(
        self, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float, metadata: Metadata
    ) -> Commit:
        request = rpc.TxnRequest()
        _add_compares(request, guards)
        for write in writes:
            # etcd checks its quota against top-level puts only: nested ones would fill it beyond all bounds.
            _add_operations(_nested_transaction(request, write) if write.when else request, write)
        answer = await _answer(self._kv.Txn, request, timeout_s, metadata, write=True)
        if not answer.succeeded:
            return Commit(answer.header.revision, guarded=False, outcomes=[])
        answers = iter(answer.responses)
        outcomes = []
        for write in writes:
            if write.when:
                outcomes.append(_outcome(next(answers).response_txn, write))
            else:
                for _ in (*write.puts, *write.deletes):
                    next(answers)
                outcomes.append(Applied())
        return Commit(answer.header.revision, guarded=True, outcomes=outcomes)

    async def range(
        self,
        key: bytes,
        end: bytes | None,
        revision: int,
        limit: int,
        timeout_s: float,
        metadata: Metadata,
        *,
        keys_only: bool = False,
    ) -> StorePage:
        request = rpc.RangeRequest(key=key, range_end=end or b"", revision=revision, limit=limit, keys_only=keys_only)
        answer = await _answer(self._kv.Range, request, timeout_s, metadata)
        records = [Record(kv.key, kv.value, kv.create_revision, kv.mod_revision) for kv in answer.kvs]
        return StorePage(records, answer.more, answer.header.revision)

    async def count(self, start: bytes, end: bytes, revision: int, timeout_s: float, metadata: Metadata) -> int:
        request = rpc.RangeRequest(key=start, range_end=end, revision=revision, count_only=True)
        return int((await _answer(self._kv.Range, request, timeout_s, metadata)).count)

    async def newest(self, start: bytes, end: bytes, timeout_s: float, metadata: Metadata) -> tuple[int, int, int]:
        order = {"sort_order": rpc.RangeRequest.DESCEND, "sort_target": rpc.RangeRequest.MOD}
        request = rpc.RangeRequest(key=start, range_end=end, limit=1, keys_only=True, **order)
        answer = await _answer(self._kv.Range, request, timeout_s, metadata)
        return answer.count, answer.kvs[0].mod_revision if answer.kvs else 0, answer.header.revision

    async def compact(self, revision: int, timeout_s: float, metadata: Metadata) -> None:
        await _answer(self._kv.Compact, rpc.CompactionRequest(revision=revision), timeout_s, metadata)

    async def status(self, timeout_s: float, metadata: Metadata) -> MemberStatus:
        """Return the member's own status. Raises Unavailable."""
        s = await _answer(self._maintenance.Status, rpc.StatusRequest(), timeout_s, metadata)
        return member_status(self.endpoint, s)

    async def divide(
        self, administrator: str, parts: Mapping[str, bytes], timeout_s: float, metadata: Metadata
    ) -> None:
        """Switch authentication on: each user opens the keys below its prefix only, the administrator everything."""
        auth = rpc.AuthStub(self._calls)
        ensure = partial(_ensure, timeout_s=timeout_s, metadata=metadata)
        for user in (_ROOT, administrator, *parts):
            await ensure(auth.UserAdd, rpc.AuthUserAddRequest(name=user, options=rpc.UserAddOptions(no_password=True)))
        for role in (_ROOT, *parts):
            await ensure(auth.RoleAdd, rpc.AuthRoleAddRequest(name=role))
        for role, prefix in parts.items():
            allowed = rpc.Permission(permType=rpc.Permission.READWRITE, key=prefix, range_end=prefix_end(prefix))
            await ensure(auth.RoleGrantPermission, rpc.AuthRoleGrantPermissionRequest(name=role, perm=allowed))
            held = await _answer(auth.RoleGet, rpc.AuthRoleGetRequest(role=role), timeout_s, metadata)
            for old in held.perm:
                if (old.key, old.range_end) != (allowed.key, allowed.range_end):
                    revoked = rpc.AuthRoleRevokePermissionRequest(role=role, key=old.key, range_end=old.range_end)
                    await _answer(auth.RoleRevokePermission, revoked, timeout_s, metadata)
        for user, role in ((_ROOT, _ROOT), (administrator, _ROOT), *zip(parts, parts, strict=True)):
            await ensure(auth.UserGrantRole, rpc.AuthUserGrantRoleRequest(user=user, role=role))
        await ensure(auth.AuthEnable, rpc.AuthEnableRequest())

    @asynccontextmanager
    async def watch(self, start: bytes, end: bytes, after: int, metadata: Metadata) -> AsyncIterator[EtcdWatch]:
        # A member that is cut off from its cluster accepts a watch and stays silent for ever, unless told not to.
        try:
            call = rpc.WatchStub(self._watches).Watch(metadata=(*metadata, ("hasleader", "true")))
        except grpc.aio.UsageError as error:
            raise Disconnected(CLOSED) from error
        watch = EtcdWatch(call, after)
        try:
            await watch.open(start, end)
            yield watch
        finally:
            call.cancel()


class EtcdWatch:
    """An open watch. Iterating yields complete revisions, and ends with Disconnected or Compacted only."""

    def __init__(self, call: Any, after: int) -> None:
        self._call, self._after = call, after
        self._whole = Unfragment(after)

    async def open(self, start: bytes, end: bytes) -> None:
        """Return when etcd says that the watch is open."""
        # From the last revision that is known, not the next: a watch that begins exactly where history was compacted
        # gets no deletion of that revision (etcd#18089, #19179). So what may be lost there is known already.
        first = max(self._after, 1)
        create = rpc.WatchCreateRequest(key=start, range_end=end, start_revision=first, fragment=True)
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                await _of_watch(self._call.write(rpc.WatchRequest(create_request=create)))
                await self._read_answer()
        except TimeoutError:
            raise Disconnected("etcd did not open the watch in time") from None

    async def __aiter__(self) -> AsyncIterator[Batch]:
        while True:
            answer = await self._read_answer()
            changes = [_change(event) for event in answer.events]
            if batch := self._whole.take(changes, more_follows=answer.fragment):
                yield batch

    async def _read_answer(self) -> Any:
        answer = await _of_watch(self._call.read())
        if answer is grpc.aio.EOF:
            raise Disconnected("etcd closed the watch")
        if answer.canceled:
            raise_for_cancelled_watch(answer.compact_revision, answer.cancel_reason)
        return answer


async def _ensure(method: Any, request: Any, timeout_s: float, metadata: Metadata) -> None:
    """Call a method that makes something; that it exists already is no error."""
    try:
        await _answer(method, request, timeout_s, metadata)
    except Unavailable as error:
        if _EXISTS not in str(error):
            raise


async def _answer(method: Any, request: Any, timeout_s: float, metadata: Metadata, *, write: bool = False) -> Any:
    try:
        return await method(request, timeout=timeout_s, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        raise_for_call(error, write=write)
    except grpc.aio.UsageError as error:
        raise Unavailable(CLOSED) from error
    except asyncio.CancelledError as error:
        if not cancelled_by_close():
            raise
        raise (UnknownOutcome if write else Unavailable)(CLOSED) from error


async def _of_watch(step: Awaitable[Any]) -> Any:
    try:
        return await step
    except grpc.aio.AioRpcError as error:
        raise_for_watch(error)
    except asyncio.InvalidStateError as error:  # writing to a call that has ended
        raise Disconnected("etcd closed the watch") from error
    except asyncio.CancelledError as error:
        if not cancelled_by_close():
            raise
        raise Disconnected(CLOSED) from error


def _channel(endpoint: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
    return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)


def _change(event: Any) -> KeyChange:
    kv = event.kv
    if event.type == 1:  # DELETE
        return KeyChange(kv.key, None, 0, kv.mod_revision)
    return KeyChange(kv.key, kv.value, kv.create_revision, kv.mod_revision)


# Requests are filled in place, field by field: to assemble one from finished messages copies them and takes three times
# as long, so that a group of many writes would stall the loop.


def _add_compares(txn: Any, compares: Iterable[Compare]) -> None:
    for c in compares:
        added = txn.compare.add()
        added.key, added.range_end = c.key, c.range_end or b""
        added.target, added.result = _FIELDS[c.field], _RELATIONS[c.relation]
        setattr(added, _OPERANDS[c.field], c.operand)


def _add_operations(txn: Any, write: Write) -> None:
    for key, value in write.puts:
        put = txn.success.add().request_put
        put.key, put.value = key, value
    for key in write.deletes:
        txn.success.add().request_delete_range.key = key


def _nested_transaction(request: Any, write: Write) -> Any:
    """Nest a transaction for one write: its conditions, and reads of the compared keys if they do not hold."""
    txn = request.success.add().request_txn
    _add_compares(txn, write.when)
    for c in write.when:
        if c.range_end is None:
            look = txn.failure.add().request_range
            look.key, look.keys_only = c.key, True
    return txn


def _outcome(answer: Any, write: Write) -> Applied | ConditionFailed:
    if answer.succeeded:
        return Applied()
    keys = [c.key for c in write.when if c.range_end is None]
    found = [op.response_range.kvs for op in answer.responses]
    return ConditionFailed({key: kvs[0].mod_revision if kvs else 0 for key, kvs in zip(keys, found, strict=True)})


def member_status(endpoint: str, said: Any) -> MemberStatus:
    """Read a StatusResponse."""
    others = [error.strip() for error in said.errors if _FULL not in error]
    unknown = UnknownFieldSet(said)
    later = {field.field_number: field.data for field in (unknown[i] for i in range(len(unknown)))}
    return MemberStatus(
        endpoint,
        said.version,
        leader=said.leader == said.header.member_id,
        db_size_bytes=said.dbSize,
        db_in_use_bytes=said.dbSizeInUse,
        quota_bytes=later.get(_DB_SIZE_QUOTA, 0),
        full=len(others) < len(said.errors),
        learner=said.isLearner,
        error="; ".join(others),
    )
