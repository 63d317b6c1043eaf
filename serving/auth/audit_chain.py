"""The chain of an audit log: each line says its number and the hash of the line before, so that changes show.

No I/O. `audit.py` makes such lines, `hq audit verify` reads them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_NAME_BYTES: Final = 6


class ChainLink(NamedTuple):
    """A line's place in the log.

    Attributes:
        chain: the log that it belongs to: a new one begins where no previous line is known.
        sequence: the first line is 1.
        previous: hash of the line before; empty: this is the first.
        broken_off: hash of bytes before it that are not a line, because writing was interrupted; empty: there are none.
    """

    chain: str
    sequence: int
    previous: str
    broken_off: str = ""


def hash_of(line: bytes) -> str:
    """The hash of a line without its end, in hexadecimal digits."""
    return hashlib.sha256(line).hexdigest()


def link_of(line: bytes) -> ChainLink | None:
    """The place of a line; None: it is not a line of an audit log."""
    try:
        told: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    sequence: Any = told.get("sequence")
    words: list[Any] = [told.get("chain"), told.get("previous"), told.get("broken_off", "")]
    if type(sequence) is not int or sequence < 1 or not all(isinstance(word, str) for word in words):
        return None
    return ChainLink(words[0], sequence, *words[1:])


class Chain:
    """How far a log has come.

    Attributes:
        name: of this chain, unlike any other.
        sequence: of the last line; 0: there is none yet.
        last: its hash.
    """

    def __init__(self, before: bytes = b"") -> None:
        """`before`: the last line so far; without one that can be read, a chain begins."""
        link = link_of(before)
        self.name = link.chain if link else secrets.token_hex(_NAME_BYTES)
        self.sequence = link.sequence if link else 0
        self.last = hash_of(before) if link else ""

    @property
    def mark(self) -> str:
        """The last line, as `hq audit verify --expect` takes it."""
        return f"{self.sequence}:{self.last}"

    def next_line(self, fields: Mapping[str, Any], broken_off: bytes = b"") -> str:
        """The next line, with these fields."""
        place: dict[str, Any] = {"chain": self.name, "sequence": self.sequence + 1, "previous": self.last}
        if broken_off:
            place["broken_off"] = hash_of(broken_off)
        return json.dumps({**place, **fields}, separators=(",", ":"))

    def wrote(self, line: str) -> None:
        """Note that this line was written: it is now the last one."""
        self.sequence += 1
        self.last = hash_of(line.encode())
