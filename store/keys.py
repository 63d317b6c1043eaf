"""Names of the keys below the prefix, and how to take them apart.

An id never holds `/`, so no id can reach into another one's keys; ids that are prefixes of others are told apart
because every key is read and compared whole.
"""

from __future__ import annotations

from typing import NamedTuple

SPEC, SECRETS, STATUS = "spec", "secrets", "status"
BEATS, FENCE, SESSION, COMMITS, HEARING = "beats", "fence", "session", "commits", "hearing"
EPOCH, FORMAT, COMPACTION, OPS, RESTORE = "epoch", "format", "compaction", "ops", "restore"
DEFAULT_PREFIX = "/hq/v1/"


class Name(NamedTuple):
    """A key taken apart: its kind (one of the words above) and the rest, e.g. an instance id or a replica."""

    kind: str
    rest: str


def prefix_end(prefix: bytes) -> bytes:
    """The first key behind all keys that start with prefix: the `range_end` of etcd."""
    for i in range(len(prefix) - 1, -1, -1):
        if prefix[i] < 0xFF:
            return prefix[:i] + bytes((prefix[i] + 1,))
    return b"\0"


class Keys:
    """Makes and reads the keys below one prefix. The prefix ends in a slash."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        self.prefix = (prefix.rstrip("/") + "/").encode()
        self.end = prefix_end(self.prefix)
        self.epoch = self.of(EPOCH)
        self.format = self.of(FORMAT)
        self.compaction = self.of(COMPACTION)
        self.restore = self.of(RESTORE)
        self.guard = self.of(OPS, "guard")
        self.confirmed = self.of(OPS, "epoch")
        self.beats = self.of(BEATS, "")
        self.hearing = self.of(HEARING, "")

    def of(self, kind: str, rest: str | None = None) -> bytes:
        """The key of a kind and, say, an instance id."""
        return self.prefix + (kind if rest is None else f"{kind}/{rest}").encode()

    def spec(self, instance_id: str) -> bytes:
        return self.of(SPEC, instance_id)

    def secrets(self, instance_id: str) -> bytes:
        return self.of(SECRETS, instance_id)

    def status(self, instance_id: str) -> bytes:
        return self.of(STATUS, instance_id)

    def suspension(self, node: str) -> bytes:
        return self.of(OPS, f"suspend/{node}")

    def name(self, key: bytes) -> Name:
        """Take a key below the prefix apart; bytes that are no UTF-8 are replaced, they belong to no record of HQ."""
        kind, _, rest = key[len(self.prefix) :].decode("utf-8", "replace").partition("/")
        return Name(kind, rest)
