"""Exit codes of commands that ask HQ or a controller, which call ends with which, and what to do about it."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hqclient.errors import HqApiError


class Exit(enum.IntEnum):
    """Exit codes that a script may rely on, whichever command it calls. The values are fixed; 2 is click's own."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    OUTCOME_UNKNOWN = 6
    NOT_ALLOWED = 7
    TIMEOUT = 8
    NOT_YET = 8
    PARTIAL = 9
    DIFFERS = 10
    ROLLED_BACK = 11
    SUPERSEDED = 12
    CANCELLED = 13
    INTERRUPTED = 130


_BY_CODE = {
    "NOT_FOUND": Exit.NOT_FOUND,
    "ABORTED": Exit.CONFLICT,
    "ALREADY_EXISTS": Exit.CONFLICT,
    "UNAVAILABLE": Exit.UNAVAILABLE,
    "DEADLINE_EXCEEDED": Exit.TIMEOUT,
    "RESOURCE_EXHAUSTED": Exit.UNAVAILABLE,
    "CANCELLED": Exit.UNAVAILABLE,
    "PERMISSION_DENIED": Exit.NOT_ALLOWED,
    "UNAUTHENTICATED": Exit.NOT_ALLOWED,
}


NOTHING_STORED = re.compile(r"\bnothing (of .* )?was stored\b")
_NOT_AN_HQ = ("UNKNOWN", "UNIMPLEMENTED", "INTERNAL")


def exit_of_code(code_name: str) -> Exit:
    """The exit code for the name of a gRPC status."""
    return _BY_CODE.get(code_name, Exit.REFUSED)


def exit_of(error: HqApiError, *, writing: bool) -> Exit:
    """The exit code for a failed call."""
    if surely_not_stored(error):
        return Exit.UNAVAILABLE
    if writing and error.outcome_unknown:
        return Exit.OUTCOME_UNKNOWN
    if error.code.name == "RESOURCE_EXHAUSTED" and error.retry_delay_s is None:
        return Exit.REFUSED  # too large: retrying later does not help
    if error.reason == "UNKNOWN_REVISION":
        return Exit.NOT_FOUND
    return exit_of_code(error.code.name)


def denial_advice(error: HqApiError) -> str:
    """Where a right or a proof was missing, and what to do about it; empty: the call failed for another reason."""
    if not error.from_hq or not error.endpoint:
        return ""
    if error.code.name == "UNAUTHENTICATED":
        return f"at {error.endpoint}: give --token-file, or --cert and --key"
    if error.code.name == "PERMISSION_DENIED":
        return f"`hqctl auth matrix --server {error.endpoint}` lists what you may call; an admin there grants roles"
    return ""


def is_no_hq(error: HqApiError) -> bool:
    """Whether something answered over gRPC, but not as HQ would: a stranger, another server of ours, or an older HQ."""
    return error.reason == "UNKNOWN_METHOD" or (not error.from_hq and error.code.name in _NOT_AN_HQ)


def surely_not_stored(error: HqApiError) -> bool:
    """Whether HQ says explicitly that it gave up a write before storing it."""
    return error.from_hq and not error.earlier_try_unknown and NOTHING_STORED.search(error.message) is not None


def code_name(number: int) -> str:
    """Name of a gRPC status by its number."""
    import grpc

    return next((code.name for code in grpc.StatusCode if code.value[0] == number), "UNKNOWN")
