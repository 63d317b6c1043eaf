"""Limits over gRPC: gRPC's own options, requests that do not arrive, answers that nobody takes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from grpc import aio

from serving.errors import ServiceError, invalid
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.protocol_errors import SlowRequest

_TICKS = 4  # a late request is given up at most a quarter of `patience_s` too late


class Arrivals:
    """Reads the one message of each call, and gives up those that do not come.

    One timer for all calls: a timer of its own would cost each call a tenth of its time.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._since: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    async def request(self, context: aio.ServicerContext[Any, Any]) -> bytes:
        """The message of the call that the current task serves.

        Raises:
            SlowRequest: it did not come in time.
            InvalidRequest: it is not coming: the caller sent none, or gRPC refused it as too large and said so.
        """
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._since[task] = self._loop.time()
        if self._timer is None:
            self._tick_later()
        try:
            message = await context.read()
        except asyncio.CancelledError:
            if task not in self._late or task.uncancel():
                raise
            raise self._slow() from None
        finally:
            del self._since[task]
            self._late.discard(task)
        if message is aio.EOF:
            error = invalid("", "the call ended without a request")
            error.limit = "max_request_bytes"
            raise error
        return cast("bytes", message)

    def _slow(self) -> ServiceError:
        return SlowRequest(self._patience_s)

    def _tick_later(self) -> None:
        self._timer = self._loop.call_later(self._patience_s / _TICKS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        oldest = self._loop.time() - self._patience_s
        for task, since in self._since.items():
            if since > oldest:
                break
            if task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._since:
            self._tick_later()


def count_until_taken(admission: Admission, peer: str, size_bytes: int) -> None:
    """Count an answer of this size, which the current task is about to send before it ends.

    Raises:
        Overloaded: too much is on its way already, to all or to this peer.
    """
    admission.hold_answer(peer, size_bytes)
    task = cast("asyncio.Task[Any]", asyncio.current_task())
    task.add_done_callback(lambda _: admission.release_answer(peer, size_bytes))


def options_of(limits: Limits, *, reuse_port: bool = False) -> list[tuple[str, int]]:
    """The options of a server within these limits; with `reuse_port` others may listen on its port."""
    return [
        ("grpc.max_receive_message_length", limits.max_request_bytes),
        ("grpc.max_send_message_length", limits.max_response_bytes),
        ("grpc.max_metadata_size", limits.max_header_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_header_bytes * 2),
        ("grpc.http2.bdp_probe", 0),  # else gRPC accepts and keeps MiBs of what a call sends after its request
        ("grpc.max_concurrent_streams", limits.max_streams_per_connection),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.max_connection_age_ms", _ms(limits.max_connection_age_s)),
        ("grpc.max_connection_age_grace_ms", _ms(limits.max_connection_age_grace_s)),
        ("grpc.max_connection_idle_ms", _ms(limits.max_connection_idle_s)),
        ("grpc.server_handshake_timeout_ms", _ms(limits.slow_request_s)),
        ("grpc.keepalive_time_ms", _ms(limits.ping_interval_s)),
        ("grpc.keepalive_timeout_ms", _ms(limits.ping_timeout_s)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(limits.min_ping_interval_s)),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.so_reuseport", int(reuse_port)),  # else a port that is taken is an error, not shared with a stranger
    ]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
