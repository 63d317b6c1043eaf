"""Ready instances of one service by what a name can select: looked up, so that a question costs what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gateways.dns.names import NameRequest
from hqclient.discovery import KnownInstance

_Facet = tuple[str, str, str]
_REVISION: Final = "revision"
_LOCATION: Final = "location"
_LABEL: Final = "label"


class Selection:
    """Of instances that do not change any more: a change makes another one."""

    def __init__(self, ready: Sequence[KnownInstance]) -> None:
        self._all = ready
        self._facets: dict[_Facet, list[KnownInstance]] = {}
        for one in ready:
            for facet in _facets(one):
                self._facets.setdefault(facet, []).append(one)

    def of(self, asked: NameRequest) -> Sequence[KnownInstance]:
        """Those that a name asks for."""
        wanted = [*_wanted(asked)]
        if not wanted:
            return self._all
        found = sorted((self._facets.get(facet, []) for facet in wanted), key=len)
        least, others = found[0], wanted if len(wanted) > 1 else []
        return [one for one in least if {*others} <= {*_facets(one)}] if others else least


def _wanted(asked: NameRequest) -> Iterator[_Facet]:
    if asked.location:
        yield _LOCATION, asked.location, ""
    if asked.revision:
        yield _REVISION, asked.revision, ""
    for key, value in asked.labels:
        yield _LABEL, key, value


def _facets(instance: KnownInstance) -> Iterator[_Facet]:
    yield _LOCATION, instance.cluster, ""
    for revision in instance.revisions:
        yield _REVISION, revision, ""
    for key, value in instance.labels.items():
        yield _LABEL, key, value
