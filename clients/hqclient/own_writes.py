"""Versions of a client's own writes, so that its reads can ask for answers that contain them."""

from __future__ import annotations

from collections.abc import Iterable

from hqpb.v1 import service_pb2


class OwnWrites:
    """The highest version among a client's own writes, and the epoch in which it means something.

    Versions of several clusters cannot be compared: over a federation gateway with several locations reads are STRONG
    instead.

    Attributes:
        spans_clusters: answers came from more than one cluster.
    """

    def __init__(self) -> None:
        self.version = 0
        self.epoch = ""
        self.spans_clusters = False
        self._cluster = ""

    def __repr__(self) -> str:
        return f"OwnWrites(version={self.version}, epoch={self.epoch!r}, spans_clusters={self.spans_clusters})"

    def wrote(self, version: int, cluster: str = "") -> None:
        """Note that a write was acknowledged at this version; `cluster`: by whom, if the answer says so."""
        self.version = max(self.version, version)
        self._note_cluster(cluster)

    def saw(self, sources: Iterable[service_pb2.Source]) -> None:
        """Note the epoch that an answer reports; another epoch voids what was remembered."""
        answered = [source for source in sources if not source.error]
        for source in answered:
            self._note_cluster(source.cluster)
        if self.spans_clusters or len(answered) != 1 or not answered[0].epoch:
            return
        if self.epoch and answered[0].epoch != self.epoch:
            self.version = 0
        self.epoch = answered[0].epoch

    def forget(self) -> None:
        """Forget the writes: their epoch is over. With several clusters it is unknown which one's, so keep them."""
        if not self.spans_clusters:
            self.version = 0
            self.epoch = ""

    def required_options(self, read: service_pb2.ReadOptions) -> service_pb2.ReadOptions:
        """`read`, asking for the client's own writes, too, unless the caller named a version or an epoch."""
        if not self.version or read.min_version or read.epoch:
            return read
        if self.spans_clusters or not self.epoch:
            merged = service_pb2.ReadOptions(consistency=service_pb2.READ_CONSISTENCY_STRONG)
        else:
            merged = service_pb2.ReadOptions(min_version=self.version, epoch=self.epoch)
        merged.MergeFrom(read)
        return merged

    def _note_cluster(self, cluster: str) -> None:
        self.spans_clusters = self.spans_clusters or bool(cluster and self._cluster and cluster != self._cluster)
        self._cluster = self._cluster or cluster
