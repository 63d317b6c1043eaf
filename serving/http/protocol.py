"""What uvicorn's HTTP/1 protocol lacks against hostile or vanished clients, on one connection.

uvicorn limits neither headers nor the time that a request takes to arrive, does not give up on readers that
do not read, and tells an application of a client that left only if the application asks. A request that
arrives in one piece pays a few comparisons for all of this.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from serving import error_statuses
from serving.errors import Overloaded, ServiceError, TooLarge
from serving.head import AmbiguousHead, Head, join_repeated
from serving.http.queues import ReadPausing, Stall, Trailers, Waiting
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.limiting.peers import address_of
from serving.protocol_errors import HeadersTooLarge, MalformedHttp, SlowRequest, TooManyConnections

_LINGER_S: Final = 2.0  # for a refused client to read why; closing at once might lose the answer


class BoundedProtocol(HttpToolsProtocol):
    """One connection, with limits. A client that leaves cancels the call that it left."""

    limits: Limits  # both are set by `bounded_by`
    admission: Admission
    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None before the first request

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.pipeline = Waiting()
        self._refused = False
        self._counted_for: str | None = None  # the peer whose connections this one is among
        self._max_header_bytes = self.limits.max_header_bytes
        self._head_bytes = 0  # of headers that are still incomplete
        self._body_open = False
        self._body_bytes = 0  # of a body that is still incomplete, framing included
        self._unwanted_bytes = 0  # of a body that goes on after its answer
        self._head_suspect = False
        self._retire_at = self.loop.time() + self.limits.max_connection_age_s
        self._slow_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = ReadPausing(transport, self.pipeline)
        self._stall = Stall(self.loop, transport, self.admission, self.limits.stalled_write_s)
        try:
            self._count_in()
        except TooManyConnections as error:
            self._refuse(error)
        else:
            self._expect_request()

    def _count_in(self) -> None:
        if len(self.connections) > self.limits.max_connections:
            raise TooManyConnections("max_connections")
        host = address_of(self.client[0]) if self.client else ""
        try:
            self.admission.connections_of.take(host)
        except Overloaded as error:
            raise TooManyConnections(error.limit) from error
        self._counted_for = host

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._counted_for is not None:
            self.admission.connections_of.give_back(self._counted_for)
        self._unset_keepalive_if_required()
        self._stall.end()
        if self._slow_timer is not None:
            self._slow_timer.cancel()
        if self._task is not None:
            self._task.cancel()  # does nothing if it is done

    # --- requests that are too large or too slow ---

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._drop(len(data))
            return
        self._head_suspect = self._head_bytes + len(data) > self._max_header_bytes
        HttpToolsProtocol.data_received(self, data)  # super() is slow, and this is every request
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.scope is not self.scope:
            self._incomplete(len(data))
        elif self._slow_timer is not None or self._head_bytes:
            self._complete()

    def _incomplete(self, size_bytes: int) -> None:
        if self._refused or self.transport.is_closing():
            return
        head_open = self.cycle is None or self.cycle.scope is not self.scope
        self._head_bytes = self._head_bytes + size_bytes if head_open and not self._body_open else 0
        self._body_open = not head_open
        if self._head_bytes > self._max_header_bytes:
            self._refuse_head()
        elif self._body_is_too_long(size_bytes):
            self._refuse(TooLarge("the body has too much chunking overhead"))
        elif self._body_open and self.cycle is not None and self.cycle.response_complete and self._drop(size_bytes):
            self._hang_up()
        elif self._slow_timer is None:
            self._slow_timer = self.loop.call_later(self.limits.slow_request_s, self._slow)

    def _body_is_too_long(self, size_bytes: int) -> bool:
        """Whether it is unanswered, and longer than any body within the limit, unless that came in tiny pieces."""
        self._body_bytes = self._body_bytes + size_bytes if self._body_open else 0
        is_open = self.cycle is not None and not self.cycle.response_complete
        return is_open and self._body_bytes > 2 * self.limits.max_request_bytes + self._max_header_bytes

    def on_chunk_header(self) -> None:
        self.headers = Trailers()  # those that came before the body belong to the call

    def _drop(self, size_bytes: int) -> bool:
        """More bytes that nobody reads: as many as one request may have are let through; then the sender must wait."""
        self._unwanted_bytes += size_bytes
        is_too_much = self._unwanted_bytes > self.limits.max_request_bytes
        if is_too_much:
            self.flow.pause_reading()
        return is_too_much

    def _hang_up(self) -> None:
        """Hang up on a client that goes on sending although it was answered already."""
        self._refused = True
        self._complete()
        self._unset_keepalive_if_required()
        self._slow_timer = self.loop.call_later(_LINGER_S, self.transport.abort)

    def _complete(self) -> None:
        self._head_bytes = self._body_bytes = self._unwanted_bytes = 0
        self._body_open = False
        if self._slow_timer is not None:
            self._slow_timer.cancel()
            self._slow_timer = None

    def _slow(self) -> None:
        self._slow_timer = None
        if self._busy():
            self._slow_timer = self.loop.call_later(self.limits.slow_request_s, self._slow)
            return
        self._refuse(SlowRequest(self.limits.slow_request_s))

    def _refuse_head(self) -> None:
        self._refuse(HeadersTooLarge(self.limits.max_header_bytes))

    def send_400_response(self, msg: str) -> None:
        self._refuse(MalformedHttp(msg))

    def _unsupported_upgrade_warning(self) -> None:
        # The parser threw the body away, if there was one.
        headers = dict(self.scope["headers"])
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            self._refuse(MalformedHttp("protocol upgrades are not supported: send no Upgrade header"))
        elif self.cycle is not None:
            self.cycle.keep_alive = False

    # --- calls ---

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # As in the base, but the task is kept, to be cancelled when the client leaves.
        if self._head_suspect and _header_bytes(cycle) > self._max_header_bytes:
            self._refuse_head()
            return
        fields = [*cycle.scope["headers"]]
        try:
            join_repeated(Head(b"", b"", b"", fields, dict(fields)))
        except AmbiguousHead as error:
            self._refuse(MalformedHttp(str(error)))
            return
        self._unwanted_bytes = 0
        if self.loop.time() > self._retire_at:
            cycle.keep_alive = False
        self._task = task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if not cycle.keep_alive:
            task.add_done_callback(self._closing)

    def _busy(self) -> bool:
        """Whether an earlier request is still being answered while the next one arrives."""
        cycle = self.cycle
        is_ahead = cycle is not None and cycle.scope is not self.scope and not cycle.response_complete
        return is_ahead or bool(self.pipeline)

    def _may_answer(self) -> bool:
        """Whether an answer written now would be taken for that of the request at fault."""
        cycle = self.cycle
        if cycle is None or cycle.scope is not self.scope or self.pipeline:
            return not self._busy()
        return not cycle.response_started or (cycle.response_complete and not cycle.more_body)

    def _refuse(self, error: ServiceError) -> None:
        """Answer with an error, stop reading, and hang up."""
        self.admission.count(error)
        self._refused = True
        self._complete()
        self._unset_keepalive_if_required()
        answer = _raw_answer(error) if self._may_answer() else b""
        if self.cycle is not None:
            self.cycle.disconnected = True  # what its task still sends goes nowhere
        if self._task is not None:
            self._task.cancel()
        if not answer or not self.transport.can_write_eof():
            self.transport.write(answer)
            self.transport.close()
            return
        self.transport.write(answer)
        self.transport.write_eof()
        self.flow.resume_reading()  # and drop it: unread bytes would make the system throw the answer away
        self._slow_timer = self.loop.call_later(_LINGER_S, self.transport.abort)

    # --- readers that do not read ---

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    def _closing(self, task: asyncio.Task[None]) -> None:
        self._stall.watch()  # or the connection to a client that does not take the last bytes would stay

    def timeout_keep_alive_handler(self) -> None:
        if self._stall:
            self._expect_request()
        elif self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _expect_request(self) -> None:
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, handler)


def bounded_by(limits: Limits, admission: Admission) -> type[BoundedProtocol]:
    """The protocol with these limits, as the class that uvicorn asks for."""
    return type("Bounded", (BoundedProtocol,), {"limits": limits, "admission": admission})


def _header_bytes(cycle: RequestResponseCycle) -> int:
    return len(cycle.scope["raw_path"]) + sum(len(n) + len(v) + 4 for n, v in cycle.scope["headers"])


def _raw_answer(error: ServiceError) -> bytes:
    body = error_statuses.connect_error_body(error)
    retry_after_s = error_statuses.retry_after_s(error)
    retry = b"" if retry_after_s is None else b"retry-after: %d\r\n" % retry_after_s
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    return STATUS_LINE[error_statuses.http_status(error)] + head + retry + b"\r\n" + body
