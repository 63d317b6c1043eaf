"""Validation of tasks and budgets, naming the field. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from google.protobuf.message import Message

from cms.ledger.actions import ACTIONS
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2
from control.amounts import Amount
from serving.durations import duration_s
from serving.errors import InvalidRequest, Violation

TYPES: Final = ("manual", "automated")
MOST_HOSTS: Final = 10_000
_MOST_RECORD_BYTES: Final = 480 << 10
_MOST_SETTING_BYTES: Final = 16 << 10
_is_host = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,253}").fullmatch
is_name = re.compile(r"[A-Za-z0-9._@-]{1,100}").fullmatch
_HOST_RULE: Final = "use 1 to 253 letters, digits and ._:@-"
_has_controls = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]").search


def check_task(task: ledger_pb2.Task, actions: Iterable[str] = ACTIONS) -> None:
    """Raises InvalidRequest, naming every field that is wrong."""
    found = [
        *check_line(task.id, "id", 255),
        *_one_of(task.action, "action", actions),
        *_one_of(task.type, "type", TYPES),
        *check_line(task.issuer, "issuer", 255),
        *check_line(task.group_id, "host_group_id", 255, may_be_empty=True),
        *_text(task.comment, "comment", 4_096),
        *_text(task.failure, "failure", 4_096),
        *_text(task.extra, "extra", 65_536),
        *_targets(task),
    ]
    if not found and task.ByteSize() > _MOST_RECORD_BYTES:
        found.append(
            Violation("hosts", f"the task is {task.ByteSize()} bytes; the limit is {_MOST_RECORD_BYTES}: split it")
        )
    if found:
        raise InvalidRequest(*found)


def check_budget(budget: cms_pb2.Budget) -> None:
    """Raises InvalidRequest, naming every field that is wrong."""
    found = []
    if not is_name(budget.name):
        found.append(Violation("budget.name", f"{_quote_value(budget.name)}: use 1 to 100 letters, digits and ._@-"))
    if bool(budget.service) == bool(budget.labels):
        found.append(Violation("budget.service", _which(budget.service, "a service", "labels")))
    if budget.service and not _is_host(budget.service):
        found.append(Violation("budget.service", f"{_quote_value(budget.service)}: {_HOST_RULE}"))
    if bool(budget.min_ready) == bool(budget.max_unavailable):
        found.append(Violation("budget.min_ready", _which(budget.min_ready, "min_ready", "max_unavailable")))
    for field in ("min_ready", "max_unavailable"):
        if text := getattr(budget, field):
            found += _amount(text, f"budget.{field}")
    found += _brief(budget.brief) if budget.HasField("brief") else []
    found += [*_words(budget.cluster, "budget.cluster"), *_words(budget.labels, "budget.labels")]
    found += _words(budget.labels.values(), "budget.labels")
    found += check_size(budget, "budget")
    if found:
        raise InvalidRequest(*found)


def check_size(setting: Message, field: str) -> list[Violation]:
    """Bound a setting's size: recorders get all settings of a kind in one answer, whose size is limited."""
    size = setting.ByteSize()
    return (
        [Violation(field, f"is {size} bytes; the limit is {_MOST_SETTING_BYTES}")] if size > _MOST_SETTING_BYTES else []
    )


def _brief(brief: cms_pb2.Brief) -> list[Violation]:
    amount = _amount(brief.max_unavailable, "budget.brief.max_unavailable")
    return [*amount, *_duration(brief.within, "budget.brief.within")]


def _which(given: str, one: str, other: str) -> str:
    """The message for two exclusive fields of which both or none were given."""
    return f"give either {one} or {other}, not both" if given else f"give {one} or {other}"


def check_hosts(hosts: Iterable[str], field: str) -> None:
    """Raises InvalidRequest, naming the first ten that are wrong."""
    if found := _hosts(hosts, field):
        raise InvalidRequest(*found[:10])


def check_reason(reason: str) -> None:
    """Raises InvalidRequest: orders are recorded with their reason."""
    if found := check_line(reason, "reason", 1_000):
        raise InvalidRequest(*found)


def _targets(task: ledger_pb2.Task) -> list[Violation]:
    if bool(task.host) == bool(task.instance):
        return [Violation("hosts", "is empty: name at least one host" if not task.host else "name hosts or instances")]
    count = len(task.host) + len(task.instance)
    if count > MOST_HOSTS:
        return [Violation("hosts", f"{count} are too many: at most {MOST_HOSTS} in one task")]
    found = _hosts(task.host, "hosts")
    for number, one in enumerate(task.instance):
        for field, word in (("location", one.location), ("id", one.id)):
            if not _is_host(word):
                found.append(Violation(f"instance[{number}].{field}", f"{_quote_value(word)}: {_HOST_RULE}"))
    return found[:10]


def _hosts(hosts: Iterable[str], field: str) -> list[Violation]:
    wrong = ((number, host) for number, host in enumerate(hosts) if not _is_host(host))
    return [Violation(f"{field}[{number}]", f"{_quote_value(host)}: {_HOST_RULE}") for number, host in wrong]


def _words(words: Iterable[str], field: str) -> list[Violation]:
    return [fault for word in words for fault in check_line(word, field, 253, may_be_empty=True)]


def _amount(text: str, field: str) -> list[Violation]:
    try:
        Amount.parse(text)
    except ValueError as error:
        return [Violation(field, str(error))]
    return []


def _duration(text: str, field: str) -> list[Violation]:
    try:
        duration_s(text, field)
    except InvalidRequest as error:
        return list(error.violations)
    return []


def _one_of(value: str, field: str, allowed: Iterable[str]) -> list[Violation]:
    words = sorted(allowed)
    return [] if value in words else [Violation(field, f"{_quote_value(value)} is not one of {', '.join(words)}")]


def check_line(value: str, field: str, most: int, *, may_be_empty: bool = False) -> list[Violation]:
    """Find the faults of a line of text of at most so many bytes."""
    if not value and not may_be_empty:
        return [Violation(field, "is empty: set it")]
    if not value.isprintable():
        return [Violation(field, f"{_quote_value(value)} has control characters: remove them")]
    return _size(value, field, most)


def _text(value: str, field: str, most: int) -> list[Violation]:
    if _has_controls(value):
        return [Violation(field, "has control characters: remove them")]
    return _size(value, field, most)


def _size(value: str, field: str, most: int) -> list[Violation]:
    size = len(value.encode("utf-8", "surrogatepass"))
    return [] if size <= most else [Violation(field, f"is {size} bytes; the limit is {most}")]


def _quote_value(value: str, shown: Callable[[str], str] = ascii) -> str:
    return shown(value[:60])
