"""What a client wrote itself, so that its reads can ask for answers that contain it."""

from __future__ import annotations

from collections.abc import Iterable

from hqpb.v1 import service_pb2


class OwnWrites:
    """The highest version among a client's own writes, and the epoch in which it means something."""

    def __init__(self) -> None:
        self.version = 0
        self.epoch = ""

    def __repr__(self) -> str:
        return f"OwnWrites(version={self.version}, epoch={self.epoch!r})"

    def wrote(self, version: int) -> None:
        """A write was acknowledged at this version."""
        self.version = max(self.version, version)

    def saw(self, sources: Iterable[service_pb2.Source]) -> None:
        """An answer told the epoch; another one than before voids what was remembered.

        Answers of several installations say nothing here: their versions cannot be compared.
        """
        epochs = [source.epoch for source in sources if not source.error]
        if len(epochs) != 1 or not epochs[0]:
            return
        if self.epoch and epochs[0] != self.epoch:
            self.version = 0
        self.epoch = epochs[0]

    def forget(self) -> None:
        """The history they belong to is over."""
        self.version = 0
        self.epoch = ""

    def required_by(self, read: service_pb2.ReadOptions) -> service_pb2.ReadOptions:
        """`read`, asking for the own writes too, unless the caller named a version or epoch himself."""
        if not self.version or read.min_version or read.epoch:
            return read
        merged = service_pb2.ReadOptions(min_version=self.version, epoch=self.epoch)
        merged.MergeFrom(read)
        return merged
