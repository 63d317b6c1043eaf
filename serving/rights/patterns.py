"""Words with `*` in them, as policies name services, nodes, clusters and identities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NODE: Final = "{node}"
_NODE_NAME: Final = r"(?P<node>[A-Za-z0-9._:@-]{1,253})"


class Patterns:
    """Names of services, nodes or clusters; `*` stands for anything. `name in patterns` looks at the whole name.

    Attributes:
        exact: those without any `*`.
    """

    __slots__ = ("_globs", "exact", "words")

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.exact = frozenset(word for word in words if "*" not in word)
        self._globs = tuple(tuple(word.split("*")) for word in words if "*" in word)

    def __contains__(self, name: str) -> bool:
        return name in self.exact or any(_matches(glob, name) for glob in self._globs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patterns) and other.words == self.words

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"Patterns({', '.join(self.words)})"


def _matches(parts: Sequence[str], name: str) -> bool:
    """Whether the parts occur in the name in this order, the first at its beginning, the last at its end.

    A regular expression would try each way to part the name, which takes minutes for a long one.
    """
    at, end = len(parts[0]), len(name) - len(parts[-1])
    if at > end or not (name.startswith(parts[0]) and name.endswith(parts[-1])):
        return False
    for part in parts[1:-1]:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


class IdentityPattern:
    """A name of identities: `*` stands for one part between slashes, `{node}` for one that is the name of a node."""

    __slots__ = ("_regex", "names_node", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError: it is empty, or holds `{node}` twice."""
        if not text or text.count(_NODE) > 1:
            raise ValueError(f"{text!r} is not a valid identity pattern: write a name, with * and at most one {_NODE}")
        self.text = text
        self.names_node = _NODE in text
        quoted = re.escape(text).replace(re.escape("*"), "[^/]+").replace(re.escape(_NODE), _NODE_NAME)
        self._regex = re.compile(quoted)

    def match(self, name: str) -> dict[str, str] | None:
        """Return the parts of an identity's name (its node, if the pattern has one); None: it does not match."""
        found = self._regex.fullmatch(name)
        return None if found is None else found.groupdict()
