"""The meaning of nanny's exit codes, and the code of many results."""

from __future__ import annotations

from collections.abc import Iterable

from hqcli.exits import Exit

MEANINGS = {
    Exit.OK: "success; everything is as described",
    Exit.REFUSED: "refused or failed (also `--wait`), or the description is invalid",
    Exit.USAGE: "usage error",
    Exit.NOT_FOUND: "no such service, snapshot or instance",
    Exit.CONFLICT: "conflict: some instances kept changing; run it again",
    Exit.UNAVAILABLE: "no installation responded in time, or the connection was lost: run it again",
    Exit.OUTCOME_UNKNOWN: "unknown whether some writes were stored: run it again",
    Exit.NOT_ALLOWED: "not authenticated or not authorized",
    Exit.NOT_YET: "status: not as ordered yet; --wait: timed out",
    Exit.PARTIAL: "some installations were unreachable; the others are done",
    Exit.DIFFERS: "plan --exit-code: there is something to upload",
    Exit.ROLLED_BACK: "--wait: it failed, and the snapshot that was active before is active again",
    Exit.SUPERSEDED: "--wait: a later order took its place",
    Exit.CANCELLED: "--wait: the service was stopped",
    Exit.INTERRUPTED: "interrupted by Ctrl-C: what was ordered goes on, what was being uploaded can be uploaded again",
}

_AWAY = (Exit.UNAVAILABLE, Exit.PARTIAL)


def worst(exits: Iterable[Exit]) -> Exit:
    """The exit code for several items or installations: what all failures have in common, else REFUSED.

    An installation that is away among others that are done is PARTIAL, so that a script can tell "again later"
    from "something is wrong".
    """
    all_of_them = list(exits)
    failures = {code for code in all_of_them if code is not Exit.OK}
    if not failures:
        return Exit.OK
    if failures <= set(_AWAY):
        return Exit.UNAVAILABLE if set(all_of_them) == {Exit.UNAVAILABLE} else Exit.PARTIAL
    failures -= set(_AWAY)
    return failures.pop() if len(failures) == 1 else Exit.REFUSED
