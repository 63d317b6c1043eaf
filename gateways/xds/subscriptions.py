"""One stream, state of the world: what its client wants, has and refused. Decisions only, no I/O.

A request lists all names of one type that are wanted from now on, and acks or nacks the last answer of that type. An
answer is due when a name is new or a resource has changed. Listeners and clusters are always sent all
together: clients treat missing ones as deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateways.xds.fixed_resources import IS_COMPLETE, TO_ALL, ResourceType
from gateways.xds.stream import ALL, WantedType, XdsStream
from xdspb.v1 import xds_pb2 as pb


@dataclass(slots=True)
class _TypeState(WantedType):
    """The state of one type.

    Attributes:
        shown: names of the last answer, if answers have everything; sent: the resource of each name, if they do not.
        nonce: of the last answer; accepted: the last version that the client took.
    """

    is_known: bool = False
    shown: tuple[str, ...] | None = None
    sent: dict[str, bytes] = field(default_factory=dict)
    nonce: str = ""
    accepted: str = ""


class Subscriptions(XdsStream):
    """The state of one stream in the form `state of the world`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._wanted = {kind: _TypeState() for kind in ResourceType}
        self._endpoints = self._wanted[ResourceType.ENDPOINTS]

    def accepted_version(self, kind: ResourceType) -> str:
        """The last version of a type that the client took."""
        return self._wanted[kind].accepted

    @property
    def wants_all(self) -> bool:
        return any(wanted.is_all or TO_ALL in wanted.names for wanted in self._wanted.values())

    def request(self, request: pb.DiscoveryRequest, locations: Collection[str] = ()) -> None:
        if (kind := self._read_kind(request, locations)) is None:
            return
        wanted = self._wanted[kind]
        if request.response_nonce and request.response_nonce != wanted.nonce:
            return  # it has not seen the last answer yet, and will repeat the request when it has
        if request.response_nonce:
            self._verdict(kind, wanted, request)
        self._subscribe(kind, wanted, request)

    def on_services_changed(self, services: Collection[str]) -> bool:
        # Only endpoints change; the rest is made from names. Most changes of a service do not change its endpoints: an
        # instance that is created is not ready yet.
        due = self._endpoints.due
        for service in services or self._named:
            due.update([name for name in self._named.get(service, ()) if self._is_other(name)])
        if not self.wants_all:
            return bool(due)
        if self._is_listed_anew(services):
            for wanted in self._wanted.values():
                wanted.due |= {ALL} if wanted.is_all else {TO_ALL} & wanted.names
        return any(wanted.due or wanted.must_answer for wanted in self._wanted.values())

    def due(self) -> Iterator[bytes]:
        for kind, wanted in self._wanted.items():
            if wanted.due or wanted.must_answer:
                answer = self._whole(kind, wanted) if IS_COMPLETE[kind] else self._part(kind, wanted)
                if answer is not None:
                    yield answer

    # --- requests -----------------------------------------------------------------------------------------------------

    def _verdict(self, kind: ResourceType, wanted: _TypeState, request: pb.DiscoveryRequest) -> None:
        if request.HasField("error_detail"):
            self._on_rejected(kind, wanted.names, request.error_detail.message)
        elif request.version_info != wanted.accepted:
            wanted.accepted = request.version_info
            self._counts.acks[kind.name.lower()] += 1

    def _subscribe(self, kind: ResourceType, wanted: _TypeState, request: pb.DiscoveryRequest) -> None:
        names = {*request.resource_names}
        self._check_names("resource_names", names, len(names))
        is_all = ALL in names or (not names and not wanted.is_known)
        added = names - wanted.names - {ALL}
        if (is_all and not wanted.is_all) or not wanted.is_known:
            wanted.must_answer = IS_COMPLETE[kind]
        if not wanted.is_known:
            wanted.has_earlier = bool(request.version_info)
        wanted.is_known = True
        wanted.is_all = (is_all or (wanted.is_all and not names)) and IS_COMPLETE[kind]
        wanted.names = names - {ALL}
        wanted.due &= wanted.names | {ALL}
        wanted.sent = {name: sent for name, sent in wanted.sent.items() if name in wanted.names}
        if kind is ResourceType.ENDPOINTS:
            self._index(wanted.names)
        if added:
            wanted.due |= added
            wanted.must_answer = IS_COMPLETE[kind]

    def _is_other(self, name: str) -> bool:
        """Whether a target's endpoints differ from what the client has."""
        made = self._resources.encoded_resource(ResourceType.ENDPOINTS, name, self.place)
        return made is not None and made != self._endpoints.sent.get(name)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _whole(self, kind: ResourceType, wanted: _TypeState) -> bytes | None:
        """All resources, unless the client has exactly these and requested no others."""
        if wanted.is_all and not self._may_list(wanted):
            return None
        must_answer, wanted.must_answer = wanted.must_answer, False
        wanted.due.clear()
        every = {*wanted.names, *self._all_names(kind)} if wanted.is_all else wanted.names
        existing = tuple(name for name in sorted(every) if self._is_readable(kind, name))
        if existing == wanted.shown and not must_answer:
            return None
        wanted.shown = existing
        made = {name: self._resource(kind, wanted, name) for name in existing}
        return self._answer(kind, wanted, {name: one for name, one in made.items() if one is not None})

    def _part(self, kind: ResourceType, wanted: _TypeState) -> bytes | None:
        """The resources that differ from what the client has; unknown ones are left as they are."""
        names = [name for name in sorted(wanted.due) if self._is_readable(kind, name)]
        made = {name: self._resource(kind, wanted, name) for name in names}
        wanted.due.clear()
        new = {
            name: resource
            for name, resource in made.items()
            if resource is not None and resource != wanted.sent.get(name)
        }
        wanted.sent.update(new)
        return self._answer(kind, wanted, new) if new else None

    def _answer(self, kind: ResourceType, wanted: _TypeState, resources: Mapping[str, bytes]) -> bytes:
        wanted.nonce, body = self._resources.response(kind, resources)
        self._counts.responses[kind.name.lower()] += 1
        return body
