"""Huffman decoding of header strings (RFC 7541, 5.2 and appendix B), a byte at a time.

The code is canonical, so the lengths alone say all of it. A row of the state machine is built when it is first needed.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Final

_REMEMBERED: Final = 1_024
_LONGEST: Final = 1_024  # bytes of a string that is remembered: tokens repeat, and are the longest that do

# fmt: off
_LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
)
# fmt: on
_EOS: Final = 256

Row = list["tuple[int, bytes] | None"]  # by the next byte: the next state, and what came out; None: not a code


class HpackError(ValueError):
    """A block of headers cannot be decoded; the table is lost, and with it the connection."""


def _tree() -> list[list[int]]:
    """Nodes with two branches each: the number of another node, or ~symbol."""
    nodes = [[0, 0]]
    code, length = 0, 0
    for symbol in sorted(range(len(_LENGTHS)), key=lambda s: (_LENGTHS[s], s)):
        code <<= _LENGTHS[symbol] - length
        length = _LENGTHS[symbol]
        node = 0
        for place in range(length - 1, 0, -1):
            branch = code >> place & 1
            if not nodes[node][branch]:
                nodes[node][branch] = len(nodes)
                nodes.append([0, 0])
            node = nodes[node][branch]
        nodes[node][code & 1] = ~symbol
        code += 1
    return nodes


_NODES: Final = _tree()
# States in which a string may end: fewer than eight bits into a code, all of them ones.
_ENDS: Final = frozenset(accumulate(range(7), lambda node, _: _NODES[node][1], initial=0))
_ROWS: Final[list[Row | None]] = [None] * len(_NODES)


def _row(state: int) -> Row:
    row: Row = []
    for byte in range(256):
        node, out = state, bytearray()
        for place in range(7, -1, -1):
            node = _NODES[node][byte >> place & 1]
            if node < 0:
                if ~node == _EOS:
                    break
                out.append(~node)
                node = 0
        row.append((node, bytes(out)) if node >= 0 else None)
    _ROWS[state] = row
    return row


def decode(data: bytes) -> bytes:
    """The string. Raises HpackError: it holds the end-of-string code, or its padding is not a beginning of that."""
    return _remembered(data) if len(data) <= _LONGEST else _decode_uncached(data)


def _decode_uncached(data: bytes) -> bytes:
    state = 0
    parts = []
    for byte in data:
        row = _ROWS[state] or _row(state)
        step = row[byte]
        if step is None:
            raise HpackError("a string holds the end-of-string code")
        state, part = step
        parts.append(part)
    if state not in _ENDS:
        raise HpackError("a string ends within a code")
    return b"".join(parts)


# By all of its bytes: what comes out depends on nothing else, so it may be shared by all connections.
_remembered = lru_cache(_REMEMBERED)(_decode_uncached)
