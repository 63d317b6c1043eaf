"""What an answer of the front says about each location."""

from __future__ import annotations

from federated.encoded import scan
from federated.errors import Silence
from hqpb.v1 import service_pb2


def silent_source(name: str, silence: Silence) -> service_pb2.Source:
    """The source of a location whose instances are missing from the answer."""
    return service_pb2.Source(cluster=name, error=str(silence))


def last_good_source(encoded: bytes, age_s: float, silence: Silence) -> bytes:
    """The encoded source of an old answer that is served because the location is silent now."""
    source = service_pb2.Source.FromString(encoded)
    if source.HasField("staleness"):  # else it was not known then, and is not now
        staleness_s = source.staleness.ToMilliseconds() / 1000 + age_s
        source.staleness.FromMilliseconds(round(staleness_s * 1000))
    source.stale = True
    source.error = f"no response: {silence}; showing the last one, {age_s:.1f} s old"
    return source.SerializeToString()


def encoded(sources: dict[str, bytes], silent: dict[str, Silence], number: int = 3) -> bytes:
    """Sources in order of locations, as repeated field `number` of an answer."""
    missing = {name: silent_source(name, silence).SerializeToString() for name, silence in silent.items()}
    together = sorted({**sources, **missing}.items())
    return b"".join(scan.delimited(number, source) for _, source in together)
