"""Names of all keys of HQ in the store: its own, and those of the store."""

from __future__ import annotations

from typing import Final

from store import keys
from store.keys import COMMITS, COMPACTION, EPOCH, FENCE, FORMAT, MENDED, RESTORE, SESSION, Name, prefix_end

__all__ = [
    "COMMITS",
    "COMPACTION",
    "DEFAULT_PREFIX",
    "EPOCH",
    "FENCE",
    "FORMAT",
    "HEARING",
    "HEARTBEATS",
    "KNOWS",
    "MENDED",
    "OPS",
    "PER_REPLICA",
    "RESTORE",
    "SECRETS",
    "SESSION",
    "SILENCE",
    "SPEC",
    "STATUS",
    "HqKeys",
    "Name",
    "prefix_end",
]

SPEC, SECRETS, STATUS = "spec", "secrets", "status"
HEARTBEATS, HEARING = "beats", "hearing"  # of each replica
KNOWS: Final = "knows"  # of each replica: fields of specs that it acts on and older replicas do not
OPS: Final = "ops"
SILENCE: Final = "silence"  # records of silence that outlive a restart of all replicas
PER_REPLICA: Final = (HEARTBEATS, HEARING, KNOWS)
DEFAULT_PREFIX: Final = "/hq/v1/"


class HqKeys(keys.Keys):
    """Makes and reads the keys below one prefix. The prefix ends in a slash."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        super().__init__(prefix)
        self.guard = self.of(OPS, "guard")
        self.confirmed = self.of(OPS, "epoch")
        self.heartbeats = self.of(HEARTBEATS, "")
        self.hearing = self.of(HEARING, "")

    def spec(self, instance_id: str) -> bytes:
        return self.of(SPEC, instance_id)

    def secrets(self, instance_id: str) -> bytes:
        return self.of(SECRETS, instance_id)

    def status(self, instance_id: str) -> bytes:
        return self.of(STATUS, instance_id)

    def suspension(self, node: str) -> bytes:
        return self.of(OPS, f"suspend/{node}")
