"""Names of the store's own keys below a prefix, the random words in them, and how to take keys apart.

A name never holds `/`, so none can reach into another one's keys; names that are prefixes of others are told apart
because every key is read and compared whole.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from storepb.v1 import store_pb2

FENCE, SESSION, COMMITS, MENDED = "fence", "session", "commits", "mended"  # of each process
EPOCH, FORMAT, COMPACTION = "epoch", "format", "compaction"
RESTORE = "restore"  # there while a backup is being restored


class Name(NamedTuple):
    """A key taken apart: its kind (such as one of the words above) and the rest, e.g. an id or a process."""

    kind: str
    rest: str


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all keys that start with prefix: the `range_end` of etcd."""
    for i in range(len(prefix) - 1, -1, -1):
        if prefix[i] < 0xFF:
            return prefix[:i] + bytes((prefix[i] + 1,))
    return b"\0"


class Keys:
    """Makes and reads the keys below one prefix. The prefix ends in a slash."""

    def __init__(self, prefix: str) -> None:
        self.prefix = (prefix.rstrip("/") + "/").encode()
        self.end = prefix_end(self.prefix)
        self.epoch = self.of(EPOCH)
        self.format = self.of(FORMAT)
        self.compaction = self.of(COMPACTION)
        self.restore = self.of(RESTORE)

    def of(self, kind: str, rest: str | None = None) -> bytes:
        """The key of a kind and, say, an id."""
        return self.prefix + (kind if rest is None else f"{kind}/{rest}").encode()

    def name(self, key: bytes) -> Name:
        """Take a key below the prefix apart; bytes that are not UTF-8 are replaced: no record of ours has them."""
        kind, _, rest = key[len(self.prefix) :].decode("utf-8", "replace").partition("/")
        return Name(kind, rest)


def new_word(rng: random.Random) -> int:
    """A random word: never 0, and unlike any other ever made."""
    return rng.getrandbits(63) | 1


def encode_word(word: int) -> bytes:
    return store_pb2.Word(word=word).SerializeToString()


def word_of(value: bytes) -> int:
    """The word in the value of a fence, session or commits key, or the write id of any record; 0 if there is none.

    All of them begin with a fixed64 field 1, so nothing needs to be decoded.
    """
    return int.from_bytes(value[1:9], "little") if value[:1] == b"\x09" and len(value) >= 9 else 0
