"""Instances in order of ids, in blocks, so that a million can be changed and read without a pause."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import cast

from hq.memory.entry import Entry

Block = Sequence[Entry]

_BLOCK = 512  # instances; a block is halved when it holds twice as many

id_of = attrgetter("traits.id")


def _first_id(block: Block) -> str:
    return block[0].traits.id


class Bucket:
    """Instances in order of ids.

    What was lent to a reader does not change under it: a lent block is a tuple, and copied before it is changed.
    """

    __slots__ = ("_blocks", "_size")

    def __init__(self) -> None:
        self._blocks: list[list[Entry] | tuple[Entry, ...]] = []
        self._size = 0

    @classmethod
    def of(cls, entry: Entry) -> Bucket:
        """A bucket that holds this instance."""
        bucket = cls()
        bucket._blocks, bucket._size = [[entry]], 1
        return bucket

    def __len__(self) -> int:
        return self._size

    def put(self, entry: Entry) -> None:
        """Add an instance or replace it."""
        wanted = entry.traits.id
        at = self._block_of(wanted)
        block = self._own(at)
        where = bisect_left(block, wanted, key=id_of)
        if where < len(block) and block[where].traits.id == wanted:
            block[where] = entry
            return
        block.insert(where, entry)
        self._size += 1
        if len(block) > 2 * _BLOCK:
            self._blocks[at : at + 1] = [block[:_BLOCK], block[_BLOCK:]]

    def append(self, entry: Entry) -> bool:
        """Add an instance after all others, if that is its place: listings are ordered by id. Return whether it was."""
        last = self._blocks[-1] if self._blocks else None
        if type(last) is not list or len(last) >= 2 * _BLOCK or last[-1].traits.id >= entry.traits.id:
            return False
        last.append(entry)
        self._size += 1
        return True

    def extend(self, entries: list[Entry]) -> None:
        """Add instances that it does not have yet, in order of ids."""
        last = self._blocks[-1] if self._blocks else []
        if last and entries and last[-1].traits.id >= entries[0].traits.id:
            for entry in entries:
                self.put(entry)
            return
        room = 2 * _BLOCK - len(last) if last and type(last) is list else 0
        if room > 0:
            cast("list[Entry]", last).extend(entries[:room])
        self._blocks += [entries[at : at + _BLOCK] for at in range(room, len(entries), _BLOCK)]
        self._size += len(entries)

    def drop(self, instance_id: str) -> None:
        """Take an instance out; nothing happens if it is not there."""
        if not self._blocks:
            return
        at = self._block_of(instance_id)
        where = bisect_left(self._blocks[at], instance_id, key=id_of)
        if where == len(self._blocks[at]) or self._blocks[at][where].traits.id != instance_id:
            return
        del self._own(at)[where]
        self._size -= 1
        if not self._blocks[at]:
            del self._blocks[at]

    def lend(self, after: str = "") -> list[Block]:
        """All instances with greater ids, as they stand now, in order of ids."""
        blocks = self._blocks
        if len(blocks) == 1 and not after:
            if type(blocks[0]) is list:
                blocks[0] = tuple(blocks[0])
            return [blocks[0]]
        first = self._block_of(after) if after and blocks else 0
        for at in range(first, len(blocks)):
            if type(blocks[at]) is list:
                blocks[at] = tuple(blocks[at])
        lent = cast("list[Block]", blocks[first:])
        if after and lent:
            lent[0] = lent[0][bisect_right(lent[0], after, key=id_of) :]
        return lent

    def _block_of(self, instance_id: str) -> int:
        """Where this id is, or belongs."""
        blocks = self._blocks
        if len(blocks) < 2 or instance_id >= blocks[-1][0].traits.id:
            return max(0, len(blocks) - 1)
        return max(0, bisect_right(blocks, instance_id, key=_first_id) - 1)

    def _own(self, at: int) -> list[Entry]:
        """The block, ready to be changed: a copy if it is lent."""
        if not self._blocks:
            self._blocks.append([])
        block = self._blocks[at]
        if type(block) is tuple:
            block = self._blocks[at] = list(block)
        return cast("list[Entry]", block)
