"""Encoded messages in other forms, piece by piece: made on demand, kept within a limit of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

from serving.limiting.turns import Turns

_PIECE_BYTES = 300  # of a piece besides its own bytes and its message's


class Pieces:
    """Messages in other forms, each made once; the oldest go first.

    A piece is found by the very bytes that it is made from, so it is never outdated.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: dict[Hashable, dict[bytes, bytes]] = {}
        self._order: deque[tuple[Hashable, bytes]] = deque()
        self._max_bytes, self._turns = max_bytes, Turns()
        self.size_bytes = 0

    def at_once(self, form: Hashable, messages: Sequence[bytes]) -> list[bytes] | None:
        """These messages in a form, if all of them are kept."""
        kept = self._kept.get(form, {})
        pieces = [piece for message in messages if (piece := kept.get(message)) is not None]
        return pieces if len(pieces) == len(messages) else None

    async def all(self, form: Hashable, make: Callable[[bytes], bytes], messages: Sequence[bytes]) -> list[bytes]:
        """These messages in a form; what is not kept is made, with turns for the loop."""
        found = self.at_once(form, messages)
        if found is None:
            found = await self._turns.in_slices(lambda message: self.get(form, make, message), messages)
        return found

    def get(self, form: Hashable, make: Callable[[bytes], bytes], message: bytes) -> bytes:
        """One message in a form."""
        kept = self._kept.setdefault(form, {})
        piece = kept.get(message)
        if piece is None:
            piece = kept[message] = make(message)
            self._order.append((form, message))
            self.size_bytes += len(message) + len(piece) + _PIECE_BYTES
            while self.size_bytes > self._max_bytes and len(self._order) > 1:
                self._drop_oldest()
        return piece

    def _drop_oldest(self) -> None:
        form, message = self._order.popleft()
        kept = self._kept[form]
        self.size_bytes -= len(message) + len(kept.pop(message)) + _PIECE_BYTES
        if not kept:
            del self._kept[form]
