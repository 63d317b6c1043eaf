"""What the transports refuse: sizes, counts and patience. One number, one flag, one clean refusal each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

from hq.errors import Overloaded, TooLarge

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of both transports; all bounds are inclusive."""

    # --- messages ---
    max_request_bytes: int = 4 * MIB  # one request, after decompression
    max_response_bytes: int = 16 * MIB  # one answer, or one message of a stream
    max_bodies_bytes: int = 128 * MIB  # HTTP request bodies being received, all connections together
    max_json_depth: int = 64  # brackets open at the same time; our own messages need fewer than ten
    max_header_bytes: int = 32 * KIB  # headers or metadata of one request

    # --- work at the same time, both transports together ---
    max_calls: int = 1_000  # calls with one answer
    max_streams: int = 5_000  # calls with a stream of answers

    # --- connections, each transport for itself ---
    max_connections: int = 5_000
    max_streams_per_connection: int = 1_000  # HTTP/2 streams (calls) on one gRPC connection
    max_connection_age_s: float = 3_600.0  # then the client is asked to connect anew, so that load spreads
    max_connection_age_grace_s: float = 300.0  # gRPC: how long calls may go on after that
    max_connection_idle_s: float = 900.0  # gRPC: without any call
    max_stream_age_s: float = 3_600.0  # a stream over HTTP ends then, to be resumed anywhere
    keep_alive_s: float = 75.0  # HTTP: between two requests; longer than balancers', who are to close first

    # --- patience ---
    slow_request_s: float = 20.0  # HTTP: from the first byte of a request to its last
    stalled_write_s: float = 60.0  # HTTP: a reader that takes no byte for so long is cut off
    ping_interval_s: float = 30.0  # gRPC: idle connections are asked whether they are still there
    ping_timeout_s: float = 20.0  # gRPC: and closed if they do not answer
    min_ping_interval_s: float = 10.0  # gRPC: clients that ping more often are sent away

    # --- compression of HTTP answers ---
    gzip_min_bytes: int = 1 * KIB  # smaller answers are never compressed
    gzip_level: int = 1


class Admission:
    """How much is under way, in all transports together; counts what it refused by name of the limit.

    The transports count `calls` up and down by themselves: this is the hot path.
    """

    def __init__(self, limits: Limits) -> None:
        self.max_calls = limits.max_calls
        self.max_streams = limits.max_streams
        self.max_bodies_bytes = limits.max_bodies_bytes
        self.max_response_bytes = limits.max_response_bytes
        self.calls = 0
        self.streams = 0
        self.bodies_bytes = 0
        self.refused: Counter[str] = Counter()

    def refuse_call(self) -> NoReturn:
        """Refuse a call over `max_calls`.

        Raises:
            Overloaded: always.
        """
        self.refused["max_calls"] += 1
        raise Overloaded(f"{self.calls} calls are under way already: send it again later, or elsewhere")

    def open_stream(self) -> None:
        """Count a stream in.

        Raises:
            Overloaded: there are `max_streams` already.
        """
        if self.streams >= self.max_streams:
            self.refused["max_streams"] += 1
            raise Overloaded(f"{self.streams} streams are open already: try again later, or elsewhere", 5.0)
        self.streams += 1

    def refuse_answer(self, size_bytes: int) -> NoReturn:
        """Refuse to send an answer over `max_response_bytes`.

        Raises:
            TooLarge: always.
        """
        self.refused["max_response_bytes"] += 1
        allowed = f"{self.max_response_bytes} are allowed"
        raise TooLarge(f"the answer has {size_bytes} bytes, {allowed}: ask for fewer items, or less of each")

    def close_stream(self) -> None:
        """Count a stream out."""
        self.streams -= 1

    def hold_body(self, size_bytes: int) -> None:
        """Count part of a body in that is still being received.

        Raises:
            Overloaded: all bodies together are over `max_bodies_bytes`; nothing was counted.
        """
        if self.bodies_bytes + size_bytes > self.max_bodies_bytes:
            self.refused["max_bodies_bytes"] += 1
            raise Overloaded("too many large requests are being received: send it again later, or elsewhere")
        self.bodies_bytes += size_bytes

    def release_body(self, size_bytes: int) -> None:
        """Count a body out."""
        self.bodies_bytes -= size_bytes
