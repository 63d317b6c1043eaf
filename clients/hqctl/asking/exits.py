"""Exit codes, and the one line that says what went wrong and what to do next."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from clients.hqctl.asking.naming import CLUSTER_HEADER, NAME_IT

if TYPE_CHECKING:
    from clients.errors import HqApiError


class Exit(enum.IntEnum):
    """What a script may rely on. The values are fixed; 2 is click's own."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    OUTCOME_UNKNOWN = 6
    NOT_ALLOWED = 7
    TIMEOUT = 8
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "refused or failed (of several items, at least one); diff: it differs",
    Exit.USAGE: "the command line makes no sense; diff: refused or failed",
    Exit.NOT_FOUND: "there is no such instance, revision or node",
    Exit.CONFLICT: "somebody else was faster, or the id is taken",
    Exit.UNAVAILABLE: "no HQ is reached, or it asks to try later; nothing was stored",
    Exit.OUTCOME_UNKNOWN: "the write may have been stored or not: look",
    Exit.NOT_ALLOWED: "you may not do this",
    Exit.TIMEOUT: "the time was up before an answer, or what was waited for",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
}

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


NOTHING_STORED = re.compile(r"\bnothing of .* was stored\b")
_NOT_AN_HQ = ("UNKNOWN", "UNIMPLEMENTED", "INTERNAL")
_BY_STATUS = {
    "DEADLINE_EXCEEDED": "`hqctl status` tells why; --timeout waits longer.",
    "UNAVAILABLE": "Try again, or another --server.",
    "NOT_FOUND": "`hqctl find` shows what there is.",
}


def exit_of_code(code_name: str) -> Exit:
    """The exit code for the name of a gRPC status."""
    return _BY_CODE.get(code_name, Exit.REFUSED)


def exit_of(error: HqApiError, *, writing: bool) -> Exit:
    """The exit code for a failed call."""
    if _surely_not_stored(error):
        return Exit.UNAVAILABLE
    if writing and error.outcome_unknown:
        return Exit.OUTCOME_UNKNOWN
    if error.code.name == "RESOURCE_EXHAUSTED" and error.retry_delay_s is None:
        return Exit.REFUSED  # too large: later is no better
    return exit_of_code(error.code.name)


def sentence(error: HqApiError, *, writing: bool) -> str:
    """One line for people: what happened, the fields to blame, what to do next."""
    return " ".join(part for part in (_what(error), _next(error, writing)) if part)


def _surely_not_stored(error: HqApiError) -> bool:
    """HQ says in so many words that it gave a write up in time."""
    return error.from_hq and not error.earlier_try_unknown and NOTHING_STORED.search(error.message) is not None


def _what(error: HqApiError) -> str:
    if error.code.name == "DEADLINE_EXCEEDED" and not error.from_hq:  # gRPC's own words are no help
        return f"{error.endpoint or 'the server'} did not answer in time."
    named = [f"{v.field}: {v.description}" for v in error.violations if v.description not in error.message]
    return "; ".join([error.message.replace("\n", " "), *named]).rstrip(".") + "."


def _next(error: HqApiError, writing: bool) -> str:
    if not error.sent:
        return "Is an HQ running there? Name others with --server or HQ_SERVER."
    if _surely_not_stored(error):
        return "Is the store there? `hqctl status` tells more."
    if writing and error.outcome_unknown:
        return "It may have been stored or not: look with `hqctl get` before you repeat it."
    if CLUSTER_HEADER in error.message:
        return "--server or --context names one." if "this is the cluster" in error.message else NAME_IT
    if "is not suspended" in error.message:
        return "`hqctl suspensions` shows who is."
    if error.retry_delay_s is not None:
        store = "`hqctl status` shows how the store is. " if error.reason.startswith("STORE_") else ""
        return f"{store}Try again in {max(1, round(error.retry_delay_s))} s."
    if not error.from_hq and error.code.name in _NOT_AN_HQ:
        return f"Is {error.endpoint} the gRPC address of an HQ?"
    return _BY_STATUS.get(error.code.name, "")
