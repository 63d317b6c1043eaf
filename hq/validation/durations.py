"""Durations that callers ask for."""

from google.protobuf.duration_pb2 import Duration

from serving.errors import Violation

MAX_DURATION_S = 30 * 86_400


def check_duration(value: Duration, field: str, limit_s: int = MAX_DURATION_S) -> Violation | None:
    """From 0 to limit_s seconds, both included. An absent one reads as 0 s: the default of its field."""
    if not 0 <= value.nanos <= 999_999_999 and value.seconds >= 0:
        return Violation(field, f"{value.nanos} nanos are out of range: use 0 to 999999999")
    if value.seconds < 0:
        return Violation(field, f"{value.seconds} s is negative: use 0 s to {limit_s} s")
    if (value.seconds, value.nanos) > (limit_s, 0):
        return Violation(field, f"{value.seconds} s is too long: use 0 s to {limit_s} s")
    return None
