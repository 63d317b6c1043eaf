"""Random words and write ids, as they lie in the store."""

from __future__ import annotations

import random

from hqpb.storage.v1 import storage_pb2


def new_word(rng: random.Random) -> int:
    """Never 0, and unlike any other ever made."""
    return rng.getrandbits(63) | 1


def encode_word(word: int) -> bytes:
    return storage_pb2.Word(word=word).SerializeToString()


def word_of(value: bytes) -> int:
    """The word in the value of a fence, session or deletes key, or the write id of any record; 0 if there is none.

    All of them begin with a fixed64 field 1, so nothing needs to be decoded.
    """
    return int.from_bytes(value[1:9], "little") if value[:1] == b"\x09" and len(value) >= 9 else 0
