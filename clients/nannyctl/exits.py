"""Exit codes of nanny. Those that hqctl has too mean the same."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class NannyExit(enum.IntEnum):
    """What a script may rely on. The values are fixed; 2 is click's own."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    OUTCOME_UNKNOWN = 6
    NOT_ALLOWED = 7
    NOT_YET = 8
    PARTIAL = 9
    DIFFERS = 10
    ROLLED_BACK = 11
    SUPERSEDED = 12
    CANCELLED = 13
    INTERRUPTED = 130


MEANINGS = {
    NannyExit.OK: "success; everything is as described",
    NannyExit.REFUSED: "refused or failed (also `--wait`), or the description is invalid",
    NannyExit.USAGE: "usage error",
    NannyExit.NOT_FOUND: "no such service, snapshot or instance",
    NannyExit.CONFLICT: "conflict: some instances kept changing; run it again",
    NannyExit.UNAVAILABLE: "no installation responded in time, or the connection was lost: run it again",
    NannyExit.OUTCOME_UNKNOWN: "unknown whether some writes were stored: run it again",
    NannyExit.NOT_ALLOWED: "not authenticated or not authorized",
    NannyExit.NOT_YET: "status: not done yet; activate, rollback: the roll-out stopped; --wait: timed out",
    NannyExit.PARTIAL: "some installations were unreachable; the others are done (for status: shown)",
    NannyExit.DIFFERS: "plan --exit-code: there is something to upload",
    NannyExit.ROLLED_BACK: "--wait: it failed, and the snapshot that was active before is active again",
    NannyExit.SUPERSEDED: "--wait: a later order took its place",
    NannyExit.CANCELLED: "--wait: the service was stopped",
    NannyExit.INTERRUPTED: "interrupted by Ctrl-C: run it again to go on",
}

_AWAY = (NannyExit.UNAVAILABLE, NannyExit.PARTIAL)


def worst(exits: Iterable[NannyExit]) -> NannyExit:
    """The exit code for several items or installations: what all failures have in common, else REFUSED.

    An installation that is away among others that are done is PARTIAL, so that a script can tell "again later"
    from "something is wrong".
    """
    all_of_them = list(exits)
    failures = {code for code in all_of_them if code is not NannyExit.OK}
    if not failures:
        return NannyExit.OK
    if failures <= set(_AWAY):
        return NannyExit.UNAVAILABLE if set(all_of_them) == {NannyExit.UNAVAILABLE} else NannyExit.PARTIAL
    failures -= set(_AWAY)
    return failures.pop() if len(failures) == 1 else NannyExit.REFUSED
