"""How much is under way, and what was refused."""

from __future__ import annotations

from collections import Counter
from typing import Final, NoReturn

from serving.clock import Clock
from serving.errors import Overloaded, ServiceError, TooLarge
from serving.limiting.limits import Limits
from serving.limiting.per_peer import PeerRate, Shares

LARGE_BYTES: Final = 64 * 1024  # requests from this size on are counted until they are answered, answers until taken


class Admission:
    """How much is under way, in all transports together; counts what was refused by name of the limit.

    `peer` is always an address without its port.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.max_calls = limits.max_calls
        self.max_streams = limits.max_streams
        self.max_bodies_bytes = limits.max_bodies_bytes
        self.max_answers_bytes = limits.max_answers_bytes
        self.max_response_bytes = limits.max_response_bytes
        self.calls = 0
        self.streams = self.unnamed_streams = 0
        self.bodies_bytes = self.answers_bytes = 0
        self.refused: Counter[str] = Counter()
        self.calls_of = Shares("max_calls_per_peer", limits.max_calls_per_peer, "calls in progress")
        self.streams_of = Shares("max_streams_per_peer", limits.max_streams_per_peer, "streams open")
        self.bodies_of = Shares("max_bodies_bytes_per_peer", limits.max_bodies_bytes_per_peer, "bytes in transit")
        self.answers_of = Shares("max_answers_bytes_per_peer", limits.max_answers_bytes_per_peer, "unread bytes")
        self.connections_of = Shares("max_connections_per_peer", limits.max_connections_per_peer, "connections")
        rate = limits.max_calls_per_peer_s
        self.peer_rate = PeerRate(rate, clock) if rate else None

    def count(self, error: ServiceError) -> None:
        """Count a refusal, if it was a limit that refused."""
        if error.limit:
            self.refused[error.limit] += 1

    def open_call(self, peer: str) -> None:
        """Count a call with one answer in.

        Raises:
            Overloaded: there are `max_calls` already, or the peer has its share of them; nothing was counted.
        """
        if self.calls >= self.max_calls:
            words = f"{self.calls} calls are in progress already: retry later, or use another replica"
            raise Overloaded(words, limit="max_calls")
        self.calls_of.take(peer)
        self.calls += 1

    def check_call(self, peer: str) -> None:
        """Whether one more call may begin, which is not counted: it is answered at once. Raises Overloaded."""
        shares = self.calls_of
        if self.calls >= self.max_calls or shares.held.get(peer, 0) >= shares.most:
            self.open_call(peer)  # which raises the error

    def close_call(self, peer: str) -> None:
        """Count a call out."""
        self.calls -= 1
        self.calls_of.give_back(peer)

    def check_rate(self, caller: str) -> None:
        """Count a call of an identity (or of a peer, where there is none), if there is a limit.

        Raises:
            Overloaded: the caller is over it.
        """
        if self.peer_rate is not None:
            self.peer_rate.take(caller)

    def open_stream(self, peer: str) -> None:
        """Count a stream in.

        Raises:
            Overloaded: there are `max_streams` already, or the peer has its share of them; nothing was counted.
        """
        if self.streams >= self.max_streams:
            words = f"{self.streams} streams are open already: retry later, or use another replica"
            raise Overloaded(words, 5.0, limit="max_streams")
        self.streams_of.take(peer)
        self.streams += 1

    def close_stream(self, peer: str) -> None:
        """Count a stream out."""
        self.streams -= 1
        self.streams_of.give_back(peer)

    def open_unnamed_stream(self, peer: str) -> None:
        """Count a stream in that needs no identity: half of all streams are reserved for callers with one.

        Raises:
            Overloaded: as `open_stream`.
        """
        if self.unnamed_streams >= -(-self.max_streams // 2):
            words = f"{self.unnamed_streams} streams that need no identity are open already: retry later"
            raise Overloaded(words, 5.0, limit="max_streams")
        self.open_stream(peer)
        self.unnamed_streams += 1

    def close_unnamed_stream(self, peer: str) -> None:
        """Count such a stream out."""
        self.unnamed_streams -= 1
        self.close_stream(peer)

    def refuse_answer(self, size_bytes: int) -> NoReturn:
        """Refuse to send an answer over `max_response_bytes`.

        Raises:
            TooLarge: always.
        """
        words = f"the response has {size_bytes} bytes, {self.max_response_bytes} are allowed"
        raise TooLarge(f"{words}: request fewer items or fields", limit="max_response_bytes")

    def hold_body(self, peer: str, size_bytes: int) -> None:
        """Count part of a body in that is still being received.

        Raises:
            Overloaded: all bodies together, or those of this peer, are over their limit; nothing was counted.
        """
        if self.bodies_bytes + size_bytes > self.max_bodies_bytes:
            words = "too many large requests are being received: retry later, or use another replica"
            raise Overloaded(words, limit="max_bodies_bytes")
        self.bodies_of.take(peer, size_bytes)
        self.bodies_bytes += size_bytes

    def release_body(self, peer: str, size_bytes: int) -> None:
        """Count a body out."""
        if size_bytes:
            self.bodies_bytes -= size_bytes
            self.bodies_of.give_back(peer, size_bytes)

    def weigh(self, peer: str, change: int) -> bool:
        """Count a change in what a peer has yet to take. False: it is more than the peer, or all, may leave unread."""
        self.answers_bytes += change
        self.answers_of.count(peer, change)
        return change <= 0 or (self.answers_bytes <= self.max_answers_bytes and self.answers_of.has_room(peer))

    def check_room(self, peer: str, size_bytes: int) -> None:
        """Look whether a large answer may lie until its peer takes it.

        Raises:
            Overloaded: too much waits already, for all or for this peer.
        """
        if self.answers_bytes + size_bytes > self.max_answers_bytes:
            words = "too many large responses are being sent: retry later, or use another replica"
            raise Overloaded(words, limit="max_answers_bytes")
        self.answers_of.check(peer, size_bytes)
