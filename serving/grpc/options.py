"""What gRPC itself is told of our limits."""

from __future__ import annotations

from serving.limiting.limits import Limits


def options_of(limits: Limits, *, reuse_port: bool = False) -> list[tuple[str, int]]:
    """The options of a server within these limits; with `reuse_port` others may listen on its port."""
    return [
        ("grpc.max_receive_message_length", limits.max_request_bytes),
        ("grpc.max_send_message_length", limits.max_response_bytes),
        ("grpc.max_metadata_size", limits.max_header_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_header_bytes * 2),
        ("grpc.http2.bdp_probe", 0),  # else whatever a call sends behind its request is taken in, up to MiBs, and kept
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
