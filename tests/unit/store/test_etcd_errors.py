"""What failed calls to etcd mean. The texts are those that grpcio and etcd really give."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from store.etcd_errors import (
    Answered,
    AuthenticationOff,
    Token,
    TokenRefused,
    WatchTokenRefused,
    raise_for_call,
    raise_for_cancelled_watch,
    raise_for_watch,
)
from store.port import Compacted, Disconnected, FutureRevision, NoSpace, Rejected, Unavailable, UnknownOutcome
from tests.support.virtual_time import in_virtual_time

Code = grpc.StatusCode


def error(code: grpc.StatusCode, details: str) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), details=details)


WRITES = [
    # never sent, says grpcio
    (
        Code.UNAVAILABLE,
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused",
        Unavailable,
    ),
    (
        Code.UNAVAILABLE,
        "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed",
        Unavailable,
    ),
    (
        Code.UNAVAILABLE,
        "errors resolving no-such-host.invalid:2379: [field:hostname lookup error:Domain name not found]",
        Unavailable,
    ),
    # sent, says grpcio
    (Code.UNAVAILABLE, "Stream removed (Socket closed)", UnknownOutcome),
    (Code.UNAVAILABLE, "Stream removed (ping timeout)", UnknownOutcome),
    (Code.UNAVAILABLE, "Stream removed (sendmsg: Broken pipe (32))", UnknownOutcome),
    (Code.UNAVAILABLE, "Connection reset by peer: failed to connect", UnknownOutcome),
    (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", UnknownOutcome),
    (Code.CANCELLED, "CANCELLED", UnknownOutcome),
    (Code.INTERNAL, "Received RST_STREAM with error code 2", UnknownOutcome),
    (Code.RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11", UnknownOutcome),
    (Code.UNKNOWN, "", UnknownOutcome),
    # etcd
    (Code.UNAVAILABLE, "etcdserver: request timed out", UnknownOutcome),
    (Code.UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure", UnknownOutcome),
    (Code.UNAVAILABLE, "etcdserver: leader changed", UnknownOutcome),
    (Code.UNAVAILABLE, "etcdserver: server stopped", UnknownOutcome),
    (Code.RESOURCE_EXHAUSTED, "etcdserver: too many requests", Answered),
    (Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", NoSpace),
    (Code.RESOURCE_EXHAUSTED, "grpc: received message larger than max (3145728 vs. 2097152)", Rejected),
    (Code.INVALID_ARGUMENT, "etcdserver: request is too large", Rejected),
    (Code.INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request", Rejected),
    (Code.INVALID_ARGUMENT, "etcdserver: user name is empty", TokenRefused),
    (Code.INVALID_ARGUMENT, "etcdserver: revision of auth store is old", TokenRefused),
    (Code.UNAUTHENTICATED, "etcdserver: invalid auth token", TokenRefused),
    (Code.PERMISSION_DENIED, "etcdserver: permission denied", Answered),
    (Code.FAILED_PRECONDITION, "etcdserver: authentication is not enabled", AuthenticationOff),
    (Code.UNAVAILABLE, "etcdserver: rpc not supported for learner", Answered),
    (Code.UNIMPLEMENTED, "unknown service etcdserverpb.KV", Answered),
]


@pytest.mark.parametrize(("code", "details", "meaning"), WRITES)
def test_a_failed_write_is_unknown_unless_it_certainly_was_not_done(
    code: grpc.StatusCode, details: str, meaning: type[Exception]
) -> None:
    with pytest.raises(meaning) as raised:
        raise_for_call(error(code, details), write=True)
    assert raised.type is meaning


@pytest.mark.parametrize(
    ("code", "details", "meaning"),
    [
        (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", Unavailable),
        (Code.INVALID_ARGUMENT, "etcdserver: user name is empty", TokenRefused),
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", Compacted),
        (Code.OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision", FutureRevision),
        (Code.UNAUTHENTICATED, "etcdserver: invalid auth token", TokenRefused),
    ],
)
def test_a_failed_read_never_has_an_unknown_outcome(
    code: grpc.StatusCode, details: str, meaning: type[Exception]
) -> None:
    with pytest.raises(meaning) as raised:
        raise_for_call(error(code, details), write=False)
    assert raised.type is meaning


def test_a_watch_ends_only_with_errors_of_the_port() -> None:
    with pytest.raises(Compacted) as gone:
        raise_for_cancelled_watch(7, "mvcc: required revision has been compacted")
    assert gone.value.revision == 7
    with pytest.raises(Disconnected):
        raise_for_cancelled_watch(0, "")
    with pytest.raises(WatchTokenRefused):
        raise_for_cancelled_watch(0, "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token")
    with pytest.raises(Disconnected):
        raise_for_watch(error(Code.UNAVAILABLE, "etcdserver: no leader"))
    with pytest.raises(WatchTokenRefused):
        raise_for_watch(error(Code.UNAUTHENTICATED, "etcdserver: invalid auth token"))


class Tokens:
    """Gives token after token, slowly."""

    def __init__(self) -> None:
        self.given = 0

    async def __call__(self) -> str:
        await asyncio.sleep(0.1)
        self.given += 1
        return f"token-{self.given}"


@in_virtual_time
async def test_a_token_is_fetched_once_for_all_who_wait() -> None:
    tokens = Tokens()
    token = Token(tokens)
    assert set(await asyncio.gather(*(token.metadata() for _ in range(10)))) == {(("token", "token-1"),)}
    assert await token.metadata() == (("token", "token-1"),)


@in_virtual_time
async def test_a_refusal_of_an_old_token_leaves_the_newer_one() -> None:
    token = Token(Tokens())
    old = await token.metadata()
    for _ in range(10):
        token.on_token_refused(old)
        assert await token.metadata() == (("token", "token-2"),)


@in_virtual_time
async def test_without_a_user_there_is_no_token() -> None:
    assert await Token(None).metadata() == ()


def test_a_learner_is_named_as_one() -> None:
    with pytest.raises(Answered, match="is a learner, which does not serve requests: name voting members"):
        raise_for_call(error(Code.UNAVAILABLE, "etcdserver: rpc not supported for learner"), write=False)
