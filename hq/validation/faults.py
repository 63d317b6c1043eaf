"""Violations on their way to the caller: collected, bounded, named by path."""

import json
from collections.abc import Iterable

from serving.errors import InvalidRequest, Violation

MAX_VIOLATIONS = 20
MAX_CHARACTERS = 2500
MAX_SHOWN_CHARACTERS = 80


class Faults:
    """Collects violations until there are MAX_VIOLATIONS of them or MAX_CHARACTERS in them, then raises them.

    So bad input is cheap to refuse, and a refusal fits into a gRPC trailer (8 KiB), as words and as details.
    """

    def __init__(self) -> None:
        self._violations: list[Violation] = []
        self._characters = 0

    def __repr__(self) -> str:
        return f"Faults({self._violations})"

    def add(self, field: str, description: str) -> None:
        self._violations.append(Violation(field, description))
        self._characters += len(field) + len(description)
        if len(self._violations) >= MAX_VIOLATIONS or self._characters >= MAX_CHARACTERS:
            self.raise_any()

    def note(self, violation: Violation | None) -> None:
        if violation is not None:
            self.add(violation.field, violation.description)

    def note_repeats(self, values: Iterable[tuple[str, str | int]]) -> None:
        """Each (path, value) but the first of equal values is a fault; empty values and zeros may repeat."""
        first_path: dict[str | int, str] = {}
        for path, value in values:
            first = first_path.setdefault(value, path)
            if value and first is not path:
                self.add(path, f"{printable_value(value)} is already used by {first}: choose another one")

    def raise_any(self) -> None:
        """Raise InvalidRequest if anything was collected."""
        if self._violations:
            raise InvalidRequest(*self._violations)


def require(*violations: Violation | None) -> None:
    """Raise InvalidRequest with those of the arguments that are violations."""
    faults = Faults()
    for violation in violations:
        faults.note(violation)
    faults.raise_any()


def member(path: str, name: str) -> str:
    """The path of a field of the message at `path`; the empty path is the request itself."""
    return f"{path}.{name}" if path else name


def entry(path: str, key: object) -> str:
    """The path of a map's entry."""
    return f"{path}[{printable_value(key)}]"


def printable_value(value: object) -> str:
    """The value as an error message may show it: in ASCII, without control characters, and short."""
    if not isinstance(value, str):
        return str(value)
    if len(value) <= MAX_SHOWN_CHARACTERS:
        return json.dumps(value)
    return json.dumps(value[:MAX_SHOWN_CHARACTERS]) + "..."
