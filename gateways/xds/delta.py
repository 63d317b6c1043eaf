"""One incremental stream: what its client wants and has, name by name. Decisions only, no I/O.

A request adds and takes away names. What a client has is kept as a short version per name, so a stream costs as much
memory as it has names; a client that comes back says what it has, and is sent what differs. Versions are digests: a
client that changes to another gateway is sent nothing that it has. A name is removed when it does not exist, and
never because nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from gateways.xds.fixed_resources import IS_COMPLETE, TO_ALL, ResourceType
from gateways.xds.stream import ALL, WantedType, XdsStream
from xdspb.v1 import xds_pb2 as pb

_GONE: Final = b""  # instead of a resource: it does not exist
_UNKNOWN_VERSION: Final = "?"  # no digest


@dataclass(slots=True)
class _DeltaWanted(WantedType):
    """The state of one type.

    Attributes:
        is_begun: there was a request.
        has: the version of each name that the client has; empty: it knows that there is none.
    """

    is_begun: bool = False
    has: dict[str, str] = field(default_factory=dict)


class DeltaSubscriptions(XdsStream):
    """The state of one stream that is told what differs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._wanted = {kind: _DeltaWanted() for kind in ResourceType}

    @property
    def wants_all(self) -> bool:
        return any(wanted.is_all or TO_ALL in wanted.names for wanted in self._wanted.values())

    def request(self, request: pb.DeltaDiscoveryRequest, locations: Collection[str] = ()) -> None:
        if (kind := self._read_kind(request, locations)) is None:
            return
        wanted = self._wanted[kind]
        if request.HasField("error_detail"):
            self._on_rejected(kind, wanted.names, request.error_detail.message)
        elif request.response_nonce:
            self._counts.acks[kind.name.lower()] += 1
        # Also from a request about an earlier answer: a change of names is sent only once.
        self._subscribe(kind, wanted, request)
        if kind is ResourceType.ENDPOINTS:
            self._index(wanted.names)

    def on_services_changed(self, services: Collection[str]) -> bool:
        wanted = self._wanted[ResourceType.ENDPOINTS]
        for service in services or self._named:
            names = self._named.get(service, ())
            wanted.due.update([name for name in names if self._news(ResourceType.ENDPOINTS, wanted, name) is not None])
        if self.wants_all and self._is_listed_anew(services):
            for kind, wanted in self._wanted.items():
                wanted.due |= self._unlike(kind, wanted) if wanted.is_all else {TO_ALL} & wanted.names
                wanted.has_earlier = wanted.has_earlier and not self._resources.is_complete
        return any(wanted.due or wanted.must_answer for wanted in self._wanted.values())

    def due(self) -> Iterator[bytes]:
        for kind, wanted in self._wanted.items():
            if wanted.due or wanted.must_answer:
                answer = self._answer(kind, wanted)
                if answer is not None:
                    yield answer

    # --- requests -----------------------------------------------------------------------------------------------------

    def _subscribe(self, kind: ResourceType, wanted: _DeltaWanted, request: pb.DeltaDiscoveryRequest) -> None:
        """Raises InvalidRequest."""
        added, dropped = {*request.resource_names_subscribe}, {*request.resource_names_unsubscribe}
        dropped &= {*wanted.names, *wanted.has, ALL}
        self._check_names("resource_names_subscribe", added, len(wanted.names - dropped | added))
        is_first, wanted.is_begun = not wanted.is_begun, True
        asks_for_all = ALL in added or (is_first and not added)
        begins_all = IS_COMPLETE[kind] and asks_for_all and ALL not in dropped and not wanted.is_all
        wanted.is_all = (wanted.is_all or begins_all) and ALL not in dropped
        self._drop(wanted, dropped - {ALL})
        if ALL in dropped:
            wanted.has = {name: version for name, version in wanted.has.items() if name in wanted.names}
        for name in added - {ALL}:
            wanted.has.pop(name, None)  # whoever asks again for what it was sent has it no more
            wanted.names.add(name)
            wanted.due.add(name)
        if is_first:
            wanted.has_earlier = bool(request.initial_resource_versions)
            self._take_over(wanted, request.initial_resource_versions)
        if begins_all:
            wanted.due |= self._unlike(kind, wanted)
            wanted.must_answer = True

    def _drop(self, wanted: _DeltaWanted, names: Collection[str]) -> None:
        for name in names:
            wanted.names.discard(name)
            wanted.has.pop(name, None)
            wanted.due.discard(name)
            if wanted.is_all:  # the client must be told whether it still has the name, as one of all
                wanted.due.add(name)

    def _take_over(self, wanted: _DeltaWanted, versions: Any) -> None:
        self._check_names("initial_resource_versions", [*versions, *versions.values()], len(versions))
        names = [name for name in versions if wanted.is_all or name in wanted.names]
        wanted.has.update({name: versions[name] or _UNKNOWN_VERSION for name in names})

    def _unlike(self, kind: ResourceType, wanted: _DeltaWanted) -> set[str]:
        """Names that a client who wants all may have to be told of.

        What this stream sent is made of names alone, so it changes only with the list. What an earlier stream sent may
        be from another version of HQ: it is compared until every location has said what it has.
        """
        listed, has = self._all_names(kind), wanted.has
        new = {name for name in listed if not has.get(name) and self._is_readable(kind, name)}
        return new | {name for name in has if wanted.has_earlier or name not in listed}

    # --- answers ------------------------------------------------------------------------------------------------------

    def _look(self, kind: ResourceType, wanted: _DeltaWanted, name: str) -> bytes | None:
        """A resource; _GONE: there is none; None: nobody knows, so the client keeps what it has."""
        if not self._is_readable(kind, name):
            return _GONE
        if name in wanted.names or name in self._all_names(kind):
            return self._resource(kind, wanted, name)
        return _GONE if self._resources.is_complete or name not in wanted.has else None

    def _news(self, kind: ResourceType, wanted: _DeltaWanted, name: str) -> bytes | None:
        """As `_look`, but None if the client has exactly that already."""
        resource = self._look(kind, wanted, name)
        if resource is None or wanted.has.get(name) == self._version(resource):
            return None
        return resource

    def _version(self, resource: bytes) -> str:
        return self._resources.version(resource) if resource else ""

    def _answer(self, kind: ResourceType, wanted: _DeltaWanted) -> bytes | None:
        must_answer = wanted.must_answer and self._resources.is_known
        found = {name: self._news(kind, wanted, name) for name in sorted(wanted.due)}
        wanted.due.clear()
        wanted.must_answer = wanted.must_answer and not must_answer
        new = {name: one for name, one in found.items() if one}
        removed = [name for name, one in found.items() if one == _GONE]
        if not (new or removed or must_answer):
            return None
        for name in removed:
            wanted.has.pop(name, None)
        for name, one in [*new.items(), *((name, _GONE) for name in removed if name in wanted.names)]:
            wanted.has[name] = self._version(one)
        _, body = self._resources.response(kind, new, removed)
        self._counts.responses[kind.name.lower()] += 1
        return body
