"""How much is under way, and what was refused."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

from serving.clock import Clock
from serving.errors import Overloaded, TooLarge
from serving.limits import Limits
from serving.peer_rate import PeerRate


class Admission:
    """How much is under way, in all transports together; counts what it refused by name of the limit.

    The transports count `calls` up and down by themselves: this is the hot path.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.max_calls = limits.max_calls
        self.max_streams = limits.max_streams
        self.max_bodies_bytes = limits.max_bodies_bytes
        self.max_response_bytes = limits.max_response_bytes
        self.calls = 0
        self.streams = 0
        self.bodies_bytes = 0
        self.refused: Counter[str] = Counter()
        rate = limits.max_calls_per_peer_s
        self.peer_rate = PeerRate(rate, clock) if rate else None

    def refuse_call(self) -> NoReturn:
        """Refuse a call over `max_calls`.

        Raises:
            Overloaded: always.
        """
        self.refused["max_calls"] += 1
        raise Overloaded(f"{self.calls} calls are under way already: send it again later, or elsewhere")

    def check_peer(self, peer: str) -> None:
        """Count a call of a peer, if peers have a limit.

        Raises:
            Overloaded: the peer is over it.
        """
        if self.peer_rate is None:
            return
        try:
            self.peer_rate.take(peer)
        except Overloaded:
            self.refused["max_calls_per_peer_s"] += 1
            raise

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
