"""Selectors of labels, as kubectl writes them: `tier=front,zone in (a,b),env notin (prod),canary,!legacy`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from hqpb.v1.service_pb2 import (
    LABEL_OPERATOR_DOES_NOT_EXIST,
    LABEL_OPERATOR_EXISTS,
    LABEL_OPERATOR_IN,
    LABEL_OPERATOR_NOT_IN,
    InstanceFilter,
    LabelRequirement,
)

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),]|[^\s=!(),]+)")
_MARKS: Final = ("==", "=", "!=", "!", "(", ")", ",")
_OPERATORS: Final = {
    "=": LABEL_OPERATOR_IN,
    "==": LABEL_OPERATOR_IN,
    "!=": LABEL_OPERATOR_NOT_IN,
    "in": LABEL_OPERATOR_IN,
    "notin": LABEL_OPERATOR_NOT_IN,
}
_EXAMPLE: Final = "write e.g. tier=front, tier!=front, tier in (front,back), tier notin (back), tier, or !tier"


class BadSelector(Exception):
    """A selector cannot be read; str() says at which character, and what was expected there."""


def put_selector(text: str, where: InstanceFilter) -> None:
    """Add a selector's requirements to a filter; `key=value` goes into `labels`, which replicas of 0.1 know, too.

    Raises:
        BadSelector: nothing was added.
    """
    for one in _requirements(text):
        if one.operator == LABEL_OPERATOR_IN and len(one.value) == 1 and one.key not in where.labels:
            where.labels[one.key] = one.value[0]
        else:
            where.label_requirement.append(one)


def is_met(one: LabelRequirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a requirement."""
    has_it = one.key in labels and (not one.value or labels[one.key] in one.value)
    return has_it is (one.operator in (LABEL_OPERATOR_IN, LABEL_OPERATOR_EXISTS))


def _requirements(text: str) -> list[LabelRequirement]:
    reader = _SelectorReader(text)
    found = [reader.read_requirement()]
    while reader.next:
        reader.expect(",")
        found.append(reader.read_requirement())
    return found


class _SelectorReader:
    """A selector, word by word.

    Attributes:
        next: the word to be read next; empty: at the end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._end = 0
        self.next = ""
        self._step()

    def read_requirement(self) -> LabelRequirement:
        if self._take("!"):
            return LabelRequirement(key=self._word("a key"), operator=LABEL_OPERATOR_DOES_NOT_EXIST)
        key = self._word("a key")
        for mark, operator in _OPERATORS.items():
            if self._take(mark):
                values = self._values(mark) if mark.isalpha() else [self._value()]
                return LabelRequirement(key=key, operator=operator, value=values)
        return LabelRequirement(key=key, operator=LABEL_OPERATOR_EXISTS)

    def expect(self, mark: str) -> None:
        if not self._take(mark):
            self._fail(f"expected {mark!r}")

    def _values(self, operator: str) -> list[str]:
        if not self._take("("):
            self._fail(f"expected '(' after {operator}")
        values = [self._value()]
        while not self._take(")"):
            self.expect(",")
            values.append(self._value())
        return values

    def _value(self) -> str:
        """Read a value, which may be empty."""
        return "" if self.next in ("", ",", ")") else self._word("a value")

    def _word(self, what: str) -> str:
        word = self.next
        if not word or word in _MARKS:
            self._fail(f"expected {what}")
        self._step()
        return word

    def _take(self, word: str) -> bool:
        if not word or self.next != word:
            return False
        self._step()
        return True

    def _step(self) -> None:
        found = _TOKEN.match(self._text, self._end)
        self._at = found.start(1) if found else len(self._text)
        self._end = found.end() if found else len(self._text)
        self.next = found.group(1) if found else ""

    def _fail(self, expected: str) -> NoReturn:
        near = f"before {self.next!r}" if self.next else "at its end"
        raise BadSelector(f"{self._text!r}: character {self._at + 1}, {near}: {expected}; {_EXAMPLE}")
