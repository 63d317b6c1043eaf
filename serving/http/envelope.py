"""The one message of a request in the Connect protocol's envelope."""

from __future__ import annotations

from serving.encoding.envelopes import COMPRESSED, PREFIX, PREFIX_BYTES
from serving.errors import TooLarge, invalid


def unwrap_only(body: bytes, max_bytes: int) -> tuple[bool, bytes]:
    """Whether the one message of a request is compressed, and the message.

    Raises:
        InvalidRequest: the body is not exactly one whole envelope with flags of a request.
        TooLarge: the envelope announces more than `max_bytes`.
    """
    if len(body) < PREFIX_BYTES:
        raise invalid("", f"the body has {len(body)} bytes: one enveloped message is expected, of five or more")
    flags, size_bytes = PREFIX.unpack_from(body)
    payload = body[PREFIX_BYTES:]
    if flags & ~COMPRESSED:
        raise invalid("", f"envelope flags {flags:#04x} are not valid in a request")
    if size_bytes > max_bytes:
        raise TooLarge(f"the message is over the limit of {max_bytes} bytes")
    if len(payload) < size_bytes:
        raise invalid("", f"the envelope announces {size_bytes} bytes, only {len(payload)} follow")
    if len(payload) > size_bytes:
        raise invalid("", "more than one message: this call takes one")
    return bool(flags & COMPRESSED), payload
