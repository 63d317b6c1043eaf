"""Which part of which description belongs to which installation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from descriptions.description import Description, Placement
from hqcli.documents import BadDocument


@dataclass(frozen=True, slots=True)
class Share:
    """The instances of one description in one installation.

    Attributes:
        elsewhere: instances of the same service there that another document describes.
    """

    description: Description
    placements: tuple[Placement, ...]
    elsewhere: frozenset[str] = frozenset()

    @property
    def ids(self) -> list[str]:
        """Ids of its instances, in order."""
        return [placement.id for placement in self.placements]


def shares_of(descriptions: Sequence[Description], known: Iterable[str]) -> dict[str, list[Share]]:
    """Shares by installation, in the order in which they are known; installations without an instance are left out.

    Raises:
        BadDocument: an instance names no installation although there are several, or an unknown one, or appears twice.
    """
    names = list(known)
    faults: list[str] = []
    placed: dict[str, dict[int, list[Placement]]] = {name: {} for name in names}
    for number, description in enumerate(descriptions):
        for placement in description.placements:
            name = placement.installation or (names[0] if len(names) == 1 else "")
            if fault := _fault(name, names):
                faults.append(f"{placement.place}.installation: {fault}")
            else:
                placed[name].setdefault(number, []).append(placement)
    faults += [fault for by_number in placed.values() for fault in _twice(by_number)]
    if faults:
        raise BadDocument("\n".join(dict.fromkeys(faults)))
    return {name: _shares(descriptions, by_number) for name, by_number in placed.items() if by_number}


def _fault(name: str, names: list[str]) -> str:
    if not name:
        return f"is missing, and there are several: {', '.join(names)}"
    return "" if name in names else f"unknown installation {name}; known: {', '.join(names)}"


def _twice(by_number: Mapping[int, list[Placement]]) -> list[str]:
    first: dict[str, str] = {}
    every = [placement for placements in by_number.values() for placement in placements]
    return [
        f"{placement.place}.id: {placement.id} is described at {first[placement.id]} too"
        for placement in every
        if first.setdefault(placement.id, placement.place) != placement.place
    ]


def _shares(descriptions: Sequence[Description], by_number: Mapping[int, list[Placement]]) -> list[Share]:
    shares = []
    for number, placements in by_number.items():
        description = descriptions[number]
        elsewhere = {
            other.id
            for other_number, others in by_number.items()
            if other_number != number and descriptions[other_number].service == description.service
            for other in others
        }
        shares.append(Share(description, tuple(placements), frozenset(elsewhere)))
    return shares
