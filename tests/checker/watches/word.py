"""What the checkers of watches share: each sees one watch of one client through all its streams."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise


class WatchWord:
    """Sees one watch, message by message, and says what is broken. The base sees to nothing.

    A message of kind OPENED stands at the start of every stream.
    """

    promise: Promise

    def saw(self, message: Watched) -> Iterator[str]:
        """What this message breaks, in words."""
        yield from ()
