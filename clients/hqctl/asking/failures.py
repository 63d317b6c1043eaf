"""The one line that says why a call failed, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hqcli.exits import denial_advice, is_no_hq, surely_not_stored
from hqctl.asking.cluster import CLUSTER_HEADER, NAME_IT

if TYPE_CHECKING:
    from hqclient.errors import HqApiError

LOOK = "hqctl get"
CREATE_IT = ": remove meta.version to create it."  # after `there is no instance`, if the document has meta.version
_BY_WORDS = {
    "is not suspended": "See `hqctl suspensions`.",
    "has no revision": "List them with `hqctl revision show INSTANCE`.",
}
# Request fields that users do not write themselves, and what they typed instead.
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


def sentence(error: HqApiError, *, writing: bool, look: str = LOOK) -> str:
    """One line for people: what happened, the fields to blame, what to do next.

    Args:
        look: how to see the result.
    """
    return " ".join(part for part in (_what(error), _next(error, writing, look)) if part)


def _what(error: HqApiError) -> str:
    is_told = error.from_hq or error.message.startswith("cannot connect to ")
    if error.code.name == "DEADLINE_EXCEEDED" and not is_told:  # gRPC's own message does not help
        return f"{error.endpoint or 'the server'} did not respond in time."
    if error.violations and all(v.field in _TYPED for v in error.violations):
        typed = dict.fromkeys(f"{_TYPED[v.field]}: {v.description}" for v in error.violations)
        return "; ".join(typed).rstrip(".") + "."
    named = [f"{v.field}: {v.description}" for v in error.violations if v.description not in error.message]
    return "; ".join([error.message.replace("\n", " "), *named]).rstrip(".") + "."


def _next(error: HqApiError, writing: bool, look: str) -> str:
    if not error.sent:
        return "Is HQ running there (usually port 7071)? Name other replicas with --server, HQ_SERVER or --context."
    if "hqctl quarantine" in error.message:
        return ""  # the message says what to do, and retrying later does not help
    if surely_not_stored(error) and error.reason.startswith("STORE_"):
        return "Is the store available? See `hqctl status`."
    if writing and error.outcome_unknown and not surely_not_stored(error):
        return f"It may or may not be stored: check with `{look}` before you retry."
    if CLUSTER_HEADER in error.message:
        return "Choose one with --server or --context." if "belongs to cluster" in error.message else NAME_IT
    if error.retry_delay_s is not None:
        store = "See `hqctl status` about the store. " if error.reason.startswith("STORE_") else ""
        return f"{store}Try again in {max(1, round(error.retry_delay_s))} s."
    if is_no_hq(error):
        return f"Is {error.endpoint} the gRPC address of an HQ, and as new as this hqctl?"
    told = (text for words, text in _BY_WORDS.items() if words in error.message)
    advice = denial_advice(error)
    return next(told, f"{advice[0].upper()}{advice[1:]}." if advice else _BY_STATUS.get(error.code.name, ""))
