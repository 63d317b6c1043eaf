"""Which locations answered, and how old their answers are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from console.backends.asking import Trouble
from console.views.problems import Problem
from console.views.words import lasting, span
from hqpb.v1 import service_pb2 as pb

T = TypeVar("T")
_AGES: Final = re.compile(r"\b(\d+(?:\.\d+)?) s(?= old\b|, not called)")


@dataclass(frozen=True, slots=True)
class LocationRow:
    """One location, for the line at the top of each page. `state`: good, old or silent."""

    name: str
    state: str
    text: str


def locations(answer: object) -> list[LocationRow]:
    """Locations of an HQ answer that lists its sources; none if this person may not see it."""
    if isinstance(answer, Trouble):
        return [] if answer.kind == "denied" else [LocationRow("HQ", "silent", answer.text)]
    return [_location(source) for source in getattr(answer, "sources", ())]


def silent(answer: object) -> list[str]:
    """The locations that an answer lacks; none if there is no answer."""
    return [] if isinstance(answer, Trouble) else [one.name for one in locations(answer) if one.state == "silent"]


def answers_except_silent(found: Iterable[tuple[str, T]], known: Iterable[LocationRow]) -> list[T]:
    """Return the answers of locations, except of silent ones, which are reported already."""
    silent_names = {one.name for one in known if one.state == "silent"}
    return [answer for name, answer in found if name not in silent_names]


def _location(source: pb.Source) -> LocationRow:
    name = source.cluster or "HQ"
    if source.error and not source.replica:
        return LocationRow(
            name, "silent", f"has not answered for {_age(lasting(source.staleness))}: {_calm(source.error)}"
        )
    if source.trust == pb.EPOCH_TRUST_DOUBTED:
        return LocationRow(name, "old", f"in doubt: {_calm(source.error)}")
    if source.stale:
        return LocationRow(name, "old", f"answers are {_age(lasting(source.staleness))} old")
    return LocationRow(name, "good", "fresh")


def _calm(error: str) -> str:
    """Drop running seconds, which would change the page all the time."""
    return _AGES.sub(lambda found: _age(float(found[1])), error)


def _age(age_s: float) -> str:
    return span(age_s) if age_s >= 60 else "under a minute"


def location_problems(sources: Iterable[pb.Source], now_s: float) -> list[Problem]:
    """Locations that are silent, late or doubted."""
    found = []
    for source in sources:
        here = _location(source)
        if here.state == "silent":
            found.append(
                Problem(
                    "bad",
                    f"location {here.name} is silent",
                    f"{_calm(source.error) or 'no answer'}. All pages lack its instances.",
                    "Look at its replicas from there: hqctl status --server HOST:PORT.",
                    since_s=now_s - lasting(source.staleness),
                )
            )
        elif source.trust == pb.EPOCH_TRUST_DOUBTED:
            found.append(
                Problem(
                    "bad",
                    f"location {here.name} may have lost its instances",
                    source.error,
                    "Is it the right etcd? Restore a backup, or confirm the epoch: hqctl epoch confirm --reason …",
                )
            )
        elif source.stale:
            why = f"{_calm(source.error)}; " if source.error else ""
            found.append(
                Problem(
                    "bad",
                    f"location {here.name} is stale",
                    f"{why}{here.text}. Reads go on from memory, writes fail, nothing expires.",
                    "Check its etcd and the network to it.",
                )
            )
    return found
