"""Limits of the transports: sizes, counts and times. One number, one flag, one clean refusal each.

docs/security.md has them as a table, with what a caller is told; a test compares it with this class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each listener; all bounds are inclusive. A peer is an address without its port, or a user."""

    # --- messages ---
    max_request_bytes: int = 4 * MIB  # one request, after decompression
    max_response_bytes: int = 16 * MIB  # one answer, or one message of a stream
    max_bodies_bytes: int = 128 * MIB  # HTTP bodies being received, large requests, requests of watches
    max_bodies_bytes_per_peer: int = 64 * MIB  # of these, from one peer
    max_answers_bytes: int = 1024 * MIB  # answers that were not taken yet, all together
    max_answers_bytes_per_peer: int = 256 * MIB  # of these, to one peer
    max_json_depth: int = 64  # brackets open at the same time, 128 at most; our own messages need fewer than ten
    max_header_bytes: int = 32 * KIB  # headers or metadata of one request

    # --- work at the same time, in all protocols ---
    max_calls: int = 4_000  # calls with one answer
    max_calls_per_peer: int = 3_000  # of these, from one peer; a gateway is one peer
    max_streams: int = 5_000  # calls with a stream of answers
    max_streams_per_peer: int = 4_000  # of these, from one peer
    max_agents: int = 20_000  # on the agents' listener: connections, calls, streams; many may share an address

    max_calls_per_peer_s: float = 0.0  # of one identity (else one peer) on average, twice as many at once; 0: no limit

    # --- connections ---
    max_connections: int = 5_000
    max_connections_per_peer: int = 4_000
    max_streams_per_connection: int = 10_000  # HTTP/2 streams (calls) on one connection: beyond it clients just wait
    max_connection_age_s: float = 3_600.0  # then the client is asked to reconnect, so that load spreads
    max_connection_age_grace_s: float = 300.0  # how long calls may go on after that
    max_connection_idle_s: float = 900.0  # HTTP/2: without any call
    max_stream_age_s: float = 3_600.0  # a stream ends then, to be resumed anywhere
    keep_alive_s: float = 75.0  # HTTP: between two requests; longer than load balancers', so that they close first

    # --- patience ---
    slow_request_s: float = 20.0  # from the first byte of a request to its last
    stalled_write_s: float = 60.0  # a reader that takes less than the minimum for this long is cut off
    min_read_bytes_per_s: int = 1 * KIB  # the minimum that a reader with bytes waiting must take
    send_buffer_bytes: int = 256 * KIB  # of the system, for one connection
    ping_interval_s: float = 30.0  # HTTP/2: idle connections are asked whether they are still there
    ping_timeout_s: float = 20.0  # HTTP/2: and closed if they do not answer

    # --- compression of HTTP answers ---
    gzip_min_bytes: int = 1 * KIB  # smaller answers are never compressed
    gzip_level: int = 1

    def for_agents(self) -> Limits:
        """Limits of a listener for agents alone: each has a connection, a watch, and a call now and then.

        Many may share an address, behind a proxy; but one address never has all.
        """
        most = self.max_agents
        share = max(1, most * 4 // 5)
        return replace(
            self,
            max_calls=most,
            max_calls_per_peer=share,
            max_streams=most,
            max_streams_per_peer=share,
            max_connections=most,
            max_connections_per_peer=share,
        )
