"""Whether a snapshot of another epoch is trusted. A store that was lost comes back empty and looks healthy. No I/O."""

from __future__ import annotations

from hqpb.v1 import service_pb2

BELIEVE_AFTER_S = 3600.0


class Doubts:
    """Which epoch of each cluster's store is trusted, and which is not yet.

    HQ reports the loss itself (`Source.trust`) if any replica remembers it. After a restart of all replicas none does;
    then a snapshot is doubted if it has another epoch and less than half of the instances known here.

    Attributes:
        believed: by cluster, the epoch whose snapshots are accepted as they are.
    """

    def __init__(self, believe_after_s: float) -> None:
        """`believe_after_s`: the longest time for which an epoch is doubted."""
        self._believe_after_s = believe_after_s
        self.believed: dict[str, str] = {}
        self._doubted: dict[str, tuple[str, float, str]] = {}  # by cluster: epoch, since when, why

    def is_snapshot_doubted(self, source: service_pb2.Source, count: int, known: int, now: float) -> bool:
        """A snapshot of a cluster is complete, with `count` instances where `known` were known: is it doubted?"""
        if not source.epoch:  # a gateway reports no epoch for a location that it cannot reach
            return False
        believed = self.believed.get(source.cluster, "")
        is_other = bool(believed) and believed != source.epoch
        says_so = source.trust == service_pb2.EPOCH_TRUST_DOUBTED
        is_confirmed = source.trust == service_pb2.EPOCH_TRUST_CONFIRMED
        epoch, since, _ = self._doubted.get(source.cluster, ("", now, ""))
        is_over = epoch == source.epoch and now - since >= self._believe_after_s
        if is_other and not is_confirmed and not is_over and (says_so or count * 2 < known):
            why = source.error or f"its store was replaced and has {count} instances, previously {known}"
            self._doubted[source.cluster] = source.epoch, since, f"{source.cluster}: {why}"
            return True
        self._believe(source)
        return False

    def believes(self, source: service_pb2.Source, now: float) -> bool:
        """Whether the epoch of a later message is trusted, perhaps only from this message on."""
        if source.cluster in self._doubted:
            _, since, _ = self._doubted[source.cluster]
            is_confirmed = source.trust == service_pb2.EPOCH_TRUST_CONFIRMED
            if not source.epoch or (not is_confirmed and now - since < self._believe_after_s):
                return False
            self._believe(source)
        return True

    def words(self) -> str:
        """Return why clusters are doubted; empty: none is."""
        return "; ".join(why for _, _, why in self._doubted.values())

    def _believe(self, source: service_pb2.Source) -> None:
        self._doubted.pop(source.cluster, None)
        self.believed[source.cluster] = source.epoch
