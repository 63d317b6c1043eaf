"""Parses names of the zone, and finds the matching instances. Decisions only.

    [selection.]SERVICE.service[.LOCATION.dc].ZONE      addresses of ready instances
    _PORT._tcp.[...]                                    SRV with the number of that port
    _why.[...]                                          TXT: how old and how complete the answer is

where a selection is any of `REVISION.rev.`, `VALUE.KEY.label.` and `INSTANCE.inst.`; the target of an SRV record is
`INSTANCE.inst.SERVICE.service.LOCATION.dc.ZONE`, a name of its own for each instance. Intermediate names exist but have
no records of their own: a denial of `_tcp.web.service` would hide all below it from a resolver that caches (RFC 8020).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from typing import Final

from hqclient.discovery import KnownInstance

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")
_DIGEST_LABEL: Final = re.compile("x-[0-9a-f]{20}")
_LONGEST_ID: Final = 40  # in a target, beside a service and a location of 63 characters each


def is_label(word: str) -> bool:
    """Whether an id can be part of a name. Names are case-insensitive, so an id with capital letters cannot."""
    return _LABEL.fullmatch(word) is not None


def instance_labels(instance: KnownInstance) -> tuple[str, ...]:
    """The labels of an instance's own name, without the zone.

    An id that is no label, or long, is replaced by a digest; so is any id if its location, which is no label, is left
    out.
    """
    id_, location = instance.id, instance.cluster
    is_plain = is_label(id_) and len(id_) <= _LONGEST_ID and not _DIGEST_LABEL.fullmatch(id_) and is_label(location)
    own = id_ if is_plain else f"x-{hashlib.blake2b(f'{location}/{id_}'.encode(), digest_size=10).hexdigest()}"
    return (own, "inst", instance.service, "service", *((location, "dc") if is_label(location) else ()))


class NameKind(Enum):
    """The kinds of names."""

    OUTSIDE = auto()  # of another zone
    APEX = auto()
    SERVER = auto()  # the name server itself
    BETWEEN = auto()  # has names below it, and no records
    SERVICE = auto()  # records of instances
    WHY = auto()
    NOTHING = auto()  # cannot exist


@dataclass(frozen=True, slots=True)
class NameRequest:
    """The request that a name makes.

    Attributes:
        service: the service whose records are wanted, or which the name is below; empty: none.
        location: only its instances; empty: those of all.
        port: the name of a port, for SRV.
        revision, labels: only instances with these.
        instance: only the instance with this label.
    """

    kind: NameKind
    service: str = ""
    location: str = ""
    port: str = ""
    revision: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    instance: str = ""


_NOTHING: Final = NameRequest(NameKind.NOTHING)


def parse_name(labels: Sequence[bytes], zone: Sequence[bytes]) -> NameRequest:
    """Parse a name in lower case."""
    if tuple(labels[-len(zone) :]) != tuple(zone):
        return NameRequest(NameKind.OUTSIDE)
    words = [label.decode("latin-1") for label in labels[: -len(zone)]]
    if not words:
        return NameRequest(NameKind.APEX)
    location = ""
    if words[-1] == "dc":
        words.pop()
        if not words:
            return NameRequest(NameKind.BETWEEN)
        location = words.pop()
        if not words:
            return NameRequest(NameKind.BETWEEN, location=location)
    return _parse_below_zone(words, location)


def _parse_below_zone(words: list[str], location: str) -> NameRequest:
    """Parse a name below the zone, or below a location of it."""
    last = words.pop()
    if last == "service":
        if not words:
            return NameRequest(NameKind.BETWEEN, location=location)
        return _parse_selectors(words, NameRequest(NameKind.SERVICE, words.pop(), location))
    if last == "ns" and not words and not location:
        return NameRequest(NameKind.SERVER)
    return _NOTHING


def _parse_selectors(words: list[str], asked: NameRequest) -> NameRequest:
    """Parse the selectors before a service, from right to left."""
    while words:
        word = words.pop()
        between = replace(asked, kind=NameKind.BETWEEN)
        if word == "rev":
            if not words:
                return between
            asked = replace(asked, revision=words.pop())
        elif word == "inst":
            if not words:
                return between
            asked = replace(asked, instance=words.pop())
        elif word == "label":
            if len(words) < 2:
                return between
            key = words.pop()
            asked = replace(asked, labels=(*asked.labels, (key, words.pop())))
        else:
            return _last(word, words, asked)
    return asked


def _last(word: str, words: list[str], asked: NameRequest) -> NameRequest:
    """Parse `_why` or `_PORT._tcp`, before which no labels are allowed."""
    if word == "_why" and not words:
        return replace(asked, kind=NameKind.WHY)
    if word != "_tcp" or len(words) > 1:
        return _NOTHING
    if not words:
        return replace(asked, kind=NameKind.BETWEEN)
    return replace(asked, port=words[0][1:]) if words[0].startswith("_") and len(words[0]) > 1 else _NOTHING


# --- what it finds ------------------------------------------------------------------------------------------------

_Facet = tuple[str, str, str]
_BY_REVISION: Final = "revision"
_BY_LOCATION: Final = "location"
_BY_LABEL: Final = "label"
_BY_INSTANCE: Final = "instance"


class Selection:
    """Ready instances of one service by what a name can select: indexed, so that a question costs what it finds.

    It is immutable: a change makes a new one.
    """

    def __init__(self, ready: Sequence[KnownInstance]) -> None:
        self._all = ready

    @cached_property
    def _by_facet(self) -> dict[_Facet, list[KnownInstance]]:
        found: dict[_Facet, list[KnownInstance]] = {}
        for one in self._all:
            for facet in _facets(one):
                found.setdefault(facet, []).append(one)
        return found

    def matching_instances(self, asked: NameRequest) -> Sequence[KnownInstance]:
        """Instances that a name selects."""
        wanted = [*_requested_facets(asked)]
        if not wanted:
            return self._all
        found = sorted((self._by_facet.get(facet, []) for facet in wanted), key=len)
        least, others = found[0], wanted if len(wanted) > 1 else []
        return [one for one in least if {*others} <= {*_facets(one)}] if others else least


def _requested_facets(asked: NameRequest) -> Iterator[_Facet]:
    if asked.location:
        yield _BY_LOCATION, asked.location, ""
    if asked.revision:
        yield _BY_REVISION, asked.revision, ""
    for key, value in asked.labels:
        yield _BY_LABEL, key, value
    if asked.instance:
        yield _BY_INSTANCE, asked.instance, ""


def _facets(instance: KnownInstance) -> Iterator[_Facet]:
    yield _BY_LOCATION, instance.cluster, ""
    for revision in instance.revisions:
        yield _BY_REVISION, revision, ""
    for key, value in instance.labels.items():
        yield _BY_LABEL, key, value
    yield _BY_INSTANCE, instance_labels(instance)[0], ""
