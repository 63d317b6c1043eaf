"""Tasks of one operation, the combined verdict of several CMSs, and tasks without an operation. Pure."""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from walle.approval.protocol import is_told
from walle.texts import truncate_text
from wallepb.v1.host_pb2 import (
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    VERDICT_UNSPECIFIED,
    OperationKind,
    Task,
    Verdict,
)
from wallepb.v1.project_pb2 import Cms

_A_MINUTE_MS: Final = 60_000
AHEAD_MS: Final = 60_000  # a process that takes over may be half a minute behind the previous one
_TIMED: Final = re.compile("([0-9a-f]{12})[0-9a-f]{8}")
HOLD_MS: Final = 300_000  # an ok that waits longer than this for another CMS is given back
_EARLIER_MS: Final = 60_000  # less, by task: two that gave back at once would get each other's oks, for ever


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """All ok: go. One rejected: no. Anything else, also no answer yet: wait. Nobody to ask: go."""
    said = set(verdicts)
    if VERDICT_REJECTED in said:
        return VERDICT_REJECTED
    return VERDICT_OK if said <= {VERDICT_OK} else VERDICT_IN_PROCESS


def tasks_for(installation: str, operation_id: str, step: int, kind: OperationKind, cms: Sequence[Cms]) -> list[Task]:
    """One task per CMS that knows this kind of operation, each with an id of its own."""
    prefix = id_prefix(installation)
    return [
        Task(id=f"{prefix}{operation_id}-{step}-{index}", cms=one.url)
        for index, one in enumerate(cms)
        if is_told(one.version, kind)
    ]


def id_prefix(installation: str) -> str:
    """The prefix of all our tasks' ids. The dot ends the name: `prod` must not delete tasks of `prod-2`.

    `installation`: a name, a dot and the word of the store.
    """
    return f"walle-{installation}."


def is_ours(installation: str, task_id: str) -> bool:
    """Whether an id has our name, and not another store's word; ids of earlier versions have no word."""
    rest = task_id.removeprefix(_name_prefix(installation))
    word = installation.partition(".")[2]
    return rest != task_id and ("." not in rest or (bool(word) and rest.startswith(f"{word}.")))


def _name_prefix(installation: str) -> str:
    return id_prefix(installation.partition(".")[0])


def new_id(now_ms: int) -> str:
    """An id of an operation or a group, with the ledger's time in it."""
    return f"{now_ms:012x}{secrets.token_hex(4)}"


def is_ahead(installation: str, task_id: str, now_ms: int) -> bool:
    """Whether a task of ours is from the ledger's future: then the ledger was restored to an older state.

    An id without the store's word shows nothing: anybody could make it up.
    """
    found = _TIMED.fullmatch(task_id.removeprefix(id_prefix(installation)).partition("-")[0])
    return found is not None and int(found[1], 16) > now_ms + AHEAD_MS


def waiting_messages(tasks: Iterable[Task]) -> str:
    """Return the CMS's messages about why we wait."""
    waited = [t for t in tasks if t.verdict != VERDICT_OK]
    return "; ".join(f"{t.cms}: {t.message or 'no answer yet'}" for t in waited)


def to_give_back(tasks: Sequence[Task], now_ms: int) -> list[Task]:
    """Oks that have waited too long for another CMS.

    Two operations that each hold one CMS's ok and wait for the other's would wait for ever.
    """
    if combine(t.verdict for t in tasks) != VERDICT_IN_PROCESS:
        return []
    return [t for t in tasks if t.verdict == VERDICT_OK and now_ms - t.ok_since_ms >= _hold_ms(t)]


def _hold_ms(task: Task) -> int:
    """How long a task's ok may wait: different for each task, and for one task each time."""
    return HOLD_MS - zlib.crc32(task.id.encode()) % _EARLIER_MS


def may_ask(tasks: Sequence[Task], task: Task, now_ms: int) -> bool:
    """Whether a task is sent to its CMS now: its pause is over, or nothing else is waited for.

    A pause may be longer than another CMS's ok is held: the two oks would miss each other for hours.
    """
    return now_ms >= task.not_before_ms or all(t.verdict == VERDICT_OK for t in tasks if t.id != task.id)


def times_returned(task: Task) -> int:
    """How often an ok of the task was given back."""
    return int(task.id.partition("~")[2] or 0)


def task_to_retry(task: Task, now_ms: int, pause_ms: int) -> Task:
    """The task to request again after a pause. A new id: the CMS may still be forgetting the old one."""
    task_id = f"{task.id.partition('~')[0]}~{times_returned(task) + 1}"
    minutes = -(-pause_ms // 60_000)
    message = (
        "returned, since another CMS did not approve within 5 minutes; "
        f"Wall-E asks again once the others approve, and within {minutes} min"
    )
    return Task(id=task_id, cms=task.cms, not_before_ms=now_ms + pause_ms, message=message)


def task_after_answer(
    task: Task, verdict: Verdict, message: str, now_ms: int, *, provisional: bool, opens_in_s: int = 0
) -> Task:
    """The task after an answer of its CMS. `opens_in_s`: as in CmsAnswer."""
    changed = Task()
    changed.CopyFrom(task)
    changed.created, changed.verdict, changed.message, changed.provisional = (
        True,
        verdict,
        truncate_text(message),
        provisional,
    )
    changed.confirmed = task.confirmed and verdict == VERDICT_OK
    changed.opens_ms = _opening_ms(task, opens_in_s, now_ms)
    if verdict == VERDICT_OK and task.verdict != VERDICT_OK:
        changed.ok_since_ms = now_ms
    return changed


def _opening_ms(task: Task, opens_in_s: int, now_ms: int) -> int:
    """When the calendar opens, or did; changes below a minute are left out, as each answer differs a little."""
    if not opens_in_s:
        return min(task.opens_ms, now_ms)
    opens_ms = now_ms + opens_in_s * 1000
    return task.opens_ms if abs(opens_ms - task.opens_ms) < _A_MINUTE_MS else opens_ms


def task_after_loss(task: Task) -> Task:
    """The task after its CMS said that it does not know it: it is created again."""
    # `opens_ms` stays: time spent waiting for a calendar does not count as the work's.
    return Task(
        id=task.id, cms=task.cms, message="the CMS lost it", verdict=VERDICT_UNSPECIFIED, opens_ms=task.opens_ms
    )


class Collector:
    """Tasks seen without an operation at the last look, per CMS.

    They are deleted when seen twice: an operation may be stored after the list was made, or ended just before.

    Attributes:
        seen_once: CMSs with tasks that were seen at the last look for the first time.
    """

    def __init__(self, installation: Callable[[], str]) -> None:
        self._installation = installation
        self._suspects: dict[str, set[str]] = {}
        self.seen_once: set[str] = set()

    def look(self, cms: str, listed: Iterable[str], wanted: Collection[str]) -> list[str]:
        """The tasks to delete now. `wanted`: ids of all tasks of operations and scenarios, read after the list."""
        stray = {one for one in self.unknown(listed, wanted) if is_ours(self._installation(), one)}
        before = self._suspects.get(cms, set())
        self._suspects[cms] = stray
        (self.seen_once.add if stray - before else self.seen_once.discard)(cms)
        return sorted(stray & before)

    def unknown(self, listed: Iterable[str], wanted: Collection[str]) -> set[str]:
        """Tasks with our name that belong to nothing known: perhaps a store that was replaced knew them."""
        prefix = _name_prefix(self._installation())
        return {task for task in listed if task.startswith(prefix) and task not in wanted}

    def strays(self) -> int:
        """How many tasks are under suspicion; for metrics."""
        return sum(len(tasks) for tasks in self._suspects.values())
