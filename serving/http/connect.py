"""What calls over the Connect protocol have in common.

https://connectrpc.com/docs/protocol
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from serving.calls.incoming import HttpCall
from serving.errors import invalid

_TIMEOUT: Final = re.compile(rb"[0-9]{1,10}")


def connect_timeout_s(headers: Mapping[bytes, bytes]) -> float | None:
    """How long the caller waits, in seconds; None: it did not say. The protocol's version is checked, too.

    Raises:
        InvalidRequest: the version is not 1, or the timeout is not a number of at most ten digits.
    """
    version = headers.get(b"connect-protocol-version")
    if version is not None and version != b"1":
        raise invalid("", "connect-protocol-version must be 1")
    timeout_ms = headers.get(b"connect-timeout-ms")
    if timeout_ms is None:
        return None
    if not _TIMEOUT.fullmatch(timeout_ms):
        raise invalid("", "connect-timeout-ms must be a whole number of at most ten digits")
    return int(timeout_ms) / 1000


def request_id_header(call: HttpCall) -> tuple[bytes, bytes]:
    """The id of this call, to be sent back to a caller that named one."""
    return b"x-request-id", call.request_id.encode()
