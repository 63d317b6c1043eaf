"""The outcome of each instance in an upload. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hqcli.exits import Exit, code_name, exit_of_code
from hqpb.v1 import service_pb2 as pb
from nannyctl.exits import worst


class UploadOutcome(enum.StrEnum):
    """The outcomes of an instance."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    REFUSED = "refused"
    NOT_ALLOWED = "not allowed"
    UNKNOWN = "unknown"
    AWAY = "away"


EXITS = {
    UploadOutcome.CONFLICT: Exit.CONFLICT,
    UploadOutcome.REFUSED: Exit.REFUSED,
    UploadOutcome.NOT_ALLOWED: Exit.NOT_ALLOWED,
    UploadOutcome.UNKNOWN: Exit.OUTCOME_UNKNOWN,
    UploadOutcome.AWAY: Exit.UNAVAILABLE,
}
_CONFLICTS = frozenset({"ABORTED", "ALREADY_EXISTS", "NOT_FOUND"})
_AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one instance.

    Attributes:
        version: meta.version afterwards; 0: not known, or gone.
        message: why it failed, or what to take into account.
    """

    id: str
    outcome: UploadOutcome
    version: int = 0
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether it is not, or not certainly, as wanted."""
        return self.outcome in EXITS

    @property
    def exit(self) -> Exit:
        """The exit code for it alone."""
        return EXITS.get(self.outcome, Exit.OK)


def counts(results: Iterable[Result]) -> dict[str, int]:
    """Results by outcome, those that occur, in the order of outcomes."""
    found = Counter(result.outcome for result in results)
    return {outcome.value: found[outcome] for outcome in UploadOutcome if found[outcome]}


def exit_of_results(results: Iterable[Result]) -> Exit:
    """The exit code for one installation. A lost connection counts less than any other failure."""
    failures = {result.exit for result in results if result.failed}
    return Exit.UNAVAILABLE if failures == {Exit.UNAVAILABLE} else worst(failures - {Exit.UNAVAILABLE})


def failure(instance_id: str, code: str, reason: str, message: str, field: str = "") -> Result:
    """A failed write, by the name of its gRPC status and HQ's reason."""
    where = field.partition("].")[2] if field.startswith("instance[") else field.removeprefix("instance.")
    text = f"{where}: {message}" if where and not message.startswith(where) else message
    return Result(instance_id, _outcome(code, reason), message=text.rstrip(".").replace("\n", " "))


def item_result(item: pb.ApplyResult) -> Result:
    """One result of ApplyInstances."""
    if item.HasField("error"):
        error = item.error
        return failure(item.id, code_name(error.code), error.reason, error.message, error.field)
    outcome = UploadOutcome.UNCHANGED if item.outcome == pb.APPLY_OUTCOME_UNCHANGED else UploadOutcome.UPDATED
    if item.outcome == pb.APPLY_OUTCOME_CREATED:
        outcome = UploadOutcome.CREATED
    return Result(item.id, outcome, item.version)


def _outcome(code: str, reason: str) -> UploadOutcome:
    if reason == "OUTCOME_UNKNOWN" or code in ("INTERNAL", "UNKNOWN"):
        return UploadOutcome.UNKNOWN
    if code in _CONFLICTS or reason == "EPOCH_CHANGED":
        return UploadOutcome.CONFLICT
    if code in _AWAY:
        return UploadOutcome.AWAY
    return UploadOutcome.NOT_ALLOWED if exit_of_code(code).name == "NOT_ALLOWED" else UploadOutcome.REFUSED
