"""How far the next page of a listing should reach.

etcd counts all keys of a range, however few of them it returns. A page that reaches to the end of everything costs as
much as everything, and a listing made of such pages grows with the square of the number of keys. So a page reaches just
beyond what it can return, as far as keys of the last page lay apart, and further where that one was not full. A wrong
guess costs time and no keys: a page ends where it ends, and the next one begins there.
"""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH = 48  # bytes of a key that are looked at, read as one number
_AIM = 4  # times as many keys as a page returns
_GROWTH = 256  # at most, from one page to the next: a family of keys (say, of a service) ends, and a wide gap follows


class Stride:
    """Guesses where ranges end, from the keys of the range before."""

    def __init__(self, prefix: bytes, end: bytes) -> None:
        """`end` is the first key behind all keys with the prefix."""
        self._prefix, self._end = prefix, end
        self._step = 0  # as numbers go; 0: nothing is known yet

    def reach(self, start: bytes) -> bytes:
        """The end of the range that begins at `start`: behind it, and never behind the end of all."""
        reached = self._number(start) + self._step
        if not self._step or reached >= 1 << 8 * _WIDTH:
            return self._end
        return self._prefix + reached.to_bytes(_WIDTH, "big")

    def saw(self, keys: Sequence[bytes], stop: bytes, limit: int) -> None:
        """A page brought these keys, which are all there are up to `stop`; it may have `limit` of them."""
        if not keys:
            self._step *= _GROWTH
            return
        covered = max(1, self._number(stop) - self._number(keys[0]))
        self._step = covered * min(_AIM * limit // len(keys), _GROWTH)

    def _number(self, key: bytes) -> int:
        if key == self._end:
            return 1 << 8 * _WIDTH
        return int.from_bytes(key[len(self._prefix) :][:_WIDTH].ljust(_WIDTH, b"\0"), "big")
