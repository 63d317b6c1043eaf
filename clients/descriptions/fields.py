"""A mapping written by hand, read field by field. Faults are collected, each with its path, so that one run shows all.

Messages of hq.v1 inside it are read by their own shape, in proto3 JSON, as in `hqctl apply`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf.message import Message

from hqcli.shape import fill_message, kind, no_text

M = TypeVar("M", bound=Message)

is_id = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,253}").fullmatch
is_name = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,63}").fullmatch
ID_RULE = "use 1 to 253 letters, digits and ._:@-"
NAME_RULE = "use 1 to 63 letters, digits and ._:@-"


class Fields:
    """The fields of one mapping. Ask for each by name, then `done()` reports fields that were not asked for.

    Args:
        value: what was written; anything else than a mapping is a fault.
        path: where it is, for messages; empty: the document itself.
        faults: grows by one line `path: what is wrong` for each fault.
    """

    def __init__(self, value: Any, path: str, faults: list[str]) -> None:
        self.path = path
        self.faults = faults
        self._asked: list[str] = []
        self._values: dict[Any, Any] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            faults.append(f"{path}: must be fields (`name: value` lines), not {kind(value)}" if path else _NO_FIELDS)

    def has(self, name: str) -> bool:
        """Whether it was written, even without a value (`name:`)."""
        self._asked.append(name)
        return name in self._values

    def raw(self, name: str) -> Any:
        """The value as written; None: absent or without a value."""
        self._asked.append(name)
        return self._values.get(name)

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def fault(self, name: str, what: str) -> None:
        """Note what is wrong with a field."""
        self.faults.append(f"{self.at(name)}: {what}")

    def text(self, name: str) -> str:
        """A text; empty: absent."""
        value = self.raw(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        self.fault(name, no_text(value))
        return ""

    def id(self, name: str, *, needed: bool = False) -> str:
        """An id as HQ takes it; empty: absent or faulty."""
        value = self.text(name)
        if not value:
            if needed and self.raw(name) is None:
                self.fault(name, "is missing")
            return ""
        if is_id(value):
            return value
        self.fault(name, f"{value!r} is malformed: {ID_RULE}")
        return ""

    def items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Path and value of each item of a list."""
        value = self.raw(name)
        if value is None:
            return
        if not isinstance(value, list):
            self.fault(name, f"must be a list (start each item with a dash), not {kind(value)}")
            return
        for number, item in enumerate(value):
            yield f"{self.at(name)}[{number}]", item

    def ids(self, name: str) -> tuple[str, ...]:
        """A list of ids."""
        found: dict[str, None] = {}
        for path, item in self.items(name):
            if not isinstance(item, str) or not is_id(item):
                shown = repr(item) if isinstance(item, str) else kind(item)
                self.faults.append(f"{path}: must be an id in quotes, not {shown}: {ID_RULE}")
            elif item in found:
                self.faults.append(f"{path}: {item} is duplicated")
            else:
                found[item] = None
        return tuple(found)

    def texts(self, name: str) -> dict[str, str | None]:
        """Texts by key, as for labels; None: the key shall go away."""
        value = self.raw(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(name, f"must be `key: value` lines, not {kind(value)}")
            return {}
        for key, inner in value.items():
            if inner is not None and not isinstance(inner, str):
                self.fault(f"{name}.{key}", no_text(inner))
        return {str(key): inner for key, inner in value.items() if inner is None or isinstance(inner, str)}

    def done(self) -> None:
        """Report fields that were not asked for."""
        for name in self._values:
            if name not in self._asked:
                close = difflib.get_close_matches(str(name), self._asked, n=1)
                known = ", ".join(dict.fromkeys(self._asked))
                instead = f"did you mean {close[0]}?" if close else f"there are {known}"
                self.fault(str(name), f"unknown field; {instead}")


_NO_FIELDS = "must be a service's description (`service: ...`, `instances: ...`)"


def message_of(value: dict[str, Any], empty: M, path: str, faults: list[str]) -> M:
    """A message of hq.v1 from its proto3 JSON form; `empty` itself if it is faulty."""
    found = fill_message(value, empty, path)
    faults += found
    return type(empty)() if found else empty
