"""Exit codes, and the one line that says what went wrong and what to do next."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from hqctl.asking.cluster import CLUSTER_HEADER, NAME_IT

if TYPE_CHECKING:
    from hqclient.errors import HqApiError


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
    Exit.REFUSED: "refused or failed (any of several items); diff: differences found; status: problems found",
    Exit.USAGE: "usage error; diff: refused or failed",
    Exit.NOT_FOUND: "not found: no such instance, revision or node",
    Exit.CONFLICT: "conflict: the instance changed meanwhile, or the id already exists",
    Exit.UNAVAILABLE: "HQ is unreachable or asked to retry later; nothing was stored",
    Exit.OUTCOME_UNKNOWN: "unknown whether the write was stored: check",
    Exit.NOT_ALLOWED: "not authenticated or not authorized, or a credential file cannot be used",
    Exit.TIMEOUT: "timed out before a response, or before the condition was met",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
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


LOOK = "hqctl get"
NOTHING_STORED = re.compile(r"\bnothing of .* was stored\b")
_NOT_AN_HQ = ("UNKNOWN", "UNIMPLEMENTED", "INTERNAL")
_BY_WORDS = {
    "is not suspended": "See `hqctl suspensions`.",
    "has no revision": "List them with `hqctl revision show INSTANCE`.",
}
# Fields of requests that were never written as such: what the user typed instead.
_TYPED = {
    "duration": "--for",
    "reason": "--reason",
    "by": "--by",
    "node_name": "NODE",
    "revision.installed.reason": "--reason",
    "revision.ready.reason": "--reason",
}
_BY_STATUS = {
    "DEADLINE_EXCEEDED": "See `hqctl status`, or raise --timeout.",
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
    if error.reason == "UNKNOWN_REVISION":
        return Exit.NOT_FOUND
    return exit_of_code(error.code.name)


def sentence(error: HqApiError, *, writing: bool, look: str = LOOK) -> str:
    """One line for people: what happened, the fields to blame, what to do next. `look`: what shows the written."""
    return " ".join(part for part in (_what(error), _next(error, writing, look)) if part)


def is_no_hq(error: HqApiError) -> bool:
    """Something answered over gRPC, and not as an HQ would."""
    return not error.from_hq and error.code.name in _NOT_AN_HQ


def _surely_not_stored(error: HqApiError) -> bool:
    """HQ says in so many words that it gave a write up in time."""
    return error.from_hq and not error.earlier_try_unknown and NOTHING_STORED.search(error.message) is not None


def _what(error: HqApiError) -> str:
    if error.code.name == "DEADLINE_EXCEEDED" and not error.from_hq:  # gRPC's own words are no help
        return f"{error.endpoint or 'the server'} did not respond in time."
    if error.violations and all(v.field in _TYPED for v in error.violations):
        typed = dict.fromkeys(f"{_TYPED[v.field]}: {v.description}" for v in error.violations)
        return "; ".join(typed).rstrip(".") + "."
    named = [f"{v.field}: {v.description}" for v in error.violations if v.description not in error.message]
    return "; ".join([error.message.replace("\n", " "), *named]).rstrip(".") + "."


def _next(error: HqApiError, writing: bool, look: str) -> str:
    if not error.sent:
        return "Is it the gRPC address of an HQ (usually port 7071)? Choose others with --server or HQ_SERVER."
    if _surely_not_stored(error):
        return "Is the store available? See `hqctl status`."
    if writing and error.outcome_unknown:
        return f"It may or may not be stored: check with `{look}` before you retry."
    if CLUSTER_HEADER in error.message:
        return "Choose one with --server or --context." if "this is cluster" in error.message else NAME_IT
    if error.retry_delay_s is not None:
        store = "See `hqctl status` about the store. " if error.reason.startswith("STORE_") else ""
        return f"{store}Try again in {max(1, round(error.retry_delay_s))} s."
    if is_no_hq(error):
        return f"Is {error.endpoint} the gRPC address of an HQ?"
    told = (text for words, text in _BY_WORDS.items() if words in error.message)
    return next(told, _BY_STATUS.get(error.code.name, ""))
