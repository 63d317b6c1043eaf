"""One stream of ADS, state of the world: what its client wants, has and refused. Decisions only, no I/O.

A request lists all names of one type that are wanted from now on, and acks or nacks the last answer of that type. An
answer is due when a name is new or a resource has changed. Listeners and clusters are always sent all
together: clients treat missing ones as deleted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gateways.xds.resources import IS_COMPLETE, Resources, ResourceType
from serving.errors import invalid
from xdspb.v1 import xds_pb2 as pb

log = logging.getLogger(__name__)

MOST_NAMES: Final = 1_000
_MOST_WORDS: Final = 500
_ALL: Final = "*"


@dataclass(slots=True)
class XdsCounts:
    """Of all streams.

    Attributes:
        responses, acks, nacks: by type.
        streams: how many are open.
    """

    responses: Counter[str] = field(default_factory=Counter)
    acks: Counter[str] = field(default_factory=Counter)
    nacks: Counter[str] = field(default_factory=Counter)
    streams: int = 0


@dataclass(slots=True)
class _Wanted:
    """The state of one type.

    Attributes:
        names: what is wanted; all: `is_all`.
        due: names that have to be sent.
        shown: what the last answer had, where it has everything; sent: what each name was, where it has not.
        nonce: of the last answer; accepted: the last version that the client took.
    """

    names: frozenset[str] = frozenset()
    is_all: bool = False
    is_known: bool = False
    due: set[str] = field(default_factory=set)
    must_answer: bool = False
    shown: tuple[str, ...] | None = None
    sent: dict[str, bytes] = field(default_factory=dict)
    nonce: str = ""
    accepted: str = ""


class Subscriptions:
    """The state of one stream.

    Attributes:
        place: where the client is: a location of HQ, by the zone or region that it reports.
        peer: its name, for messages.
    """

    def __init__(
        self,
        resources: Resources,
        counts: XdsCounts,
        may_read: Callable[[str], bool] = lambda _: True,
        place: str = "",
    ) -> None:
        """`may_read`: whether the client may know of a service. `place`: for clients that do not report theirs."""
        self._resources, self._counts, self._may_read = resources, counts, may_read
        self.place, self.peer = place, "a client"
        self._wanted = {kind: _Wanted() for kind in ResourceType}
        self._endpoints = self._wanted[ResourceType.ENDPOINTS]
        self._named: dict[str, set[str]] = {}  # by service, names of endpoints that are wanted

    def accepted_version(self, kind: ResourceType) -> str:
        """The last version of a type that the client took."""
        return self._wanted[kind].accepted

    @property
    def services(self) -> Collection[str]:
        """Those whose changes concern this stream."""
        return self._named.keys()

    @property
    def wants_all(self) -> bool:
        """It wants whatever there is, so that every new service concerns it."""
        return self._wanted[ResourceType.LISTENER].is_all or self._wanted[ResourceType.CLUSTER].is_all

    def request(self, request: pb.DiscoveryRequest, locations: Collection[str] = ()) -> None:
        """Handle a request. `locations`: those of HQ, to which the client's place must belong.

        Raises:
            InvalidRequest: it wants too many names.
        """
        if request.HasField("node"):
            self._set_peer(request.node, locations)
        try:
            kind = ResourceType(request.type_url)
        except ValueError:
            log.info("xDS: %s subscribes to %s, which is not served here", self.peer, request.type_url[:_MOST_WORDS])
            return
        wanted = self._wanted[kind]
        if request.response_nonce and request.response_nonce != wanted.nonce:
            return  # it has not seen the last answer yet, and will repeat the request when it has
        if request.response_nonce:
            self._verdict(kind, wanted, request)
        self._subscribe(kind, wanted, request)

    def on_services_changed(self, services: Collection[str]) -> bool:
        """These services changed; none: what is known as a whole. Returns whether an answer may be due.

        Only endpoints change; the rest is made from names. Most changes of a service do not change its endpoints: an
        instance that is created is not ready yet.
        """
        due = self._endpoints.due
        for service in services or self._named:
            due.update([name for name in self._named.get(service, ()) if self._is_other(name)])
        if not self.wants_all:
            return bool(due)
        for kind in (ResourceType.CLUSTER, ResourceType.LISTENER):
            if self._wanted[kind].is_all:
                self._wanted[kind].due.update(self._resources.names())
        return True

    def due(self) -> Iterator[bytes]:
        """The answers that are due, encoded, each made when it is taken."""
        for kind, wanted in self._wanted.items():
            if wanted.due or wanted.must_answer:
                answer = self._whole(kind, wanted) if IS_COMPLETE[kind] else self._part(kind, wanted)
                if answer is not None:
                    yield answer

    # --- requests -----------------------------------------------------------------------------------------------------

    def _set_peer(self, node: pb.Node, locations: Collection[str]) -> None:
        self.peer = node.id[:100] or self.peer
        said = [node.locality.zone, node.locality.region]
        self.place = next((one for one in said if one and one in locations), self.place)

    def _verdict(self, kind: ResourceType, wanted: _Wanted, request: pb.DiscoveryRequest) -> None:
        if request.HasField("error_detail"):
            self._counts.nacks[kind.name.lower()] += 1
            words = request.error_detail.message[:_MOST_WORDS]
            names = ", ".join(sorted(wanted.names))[:_MOST_WORDS]
            log.error(
                "xDS: %s rejects (NACK) %s of %s and keeps the last version: %s",
                self.peer,
                kind.name.lower(),
                names,
                words,
            )
        elif request.version_info != wanted.accepted:
            wanted.accepted = request.version_info
            self._counts.acks[kind.name.lower()] += 1

    def _subscribe(self, kind: ResourceType, wanted: _Wanted, request: pb.DiscoveryRequest) -> None:
        names = frozenset(request.resource_names)
        if len(names) > MOST_NAMES:
            raise invalid("resource_names", f"{len(names)} names, of {MOST_NAMES} allowed on one stream")
        is_all = _ALL in names or (not names and not wanted.is_known)
        added = names - wanted.names - {_ALL}
        if (is_all and not wanted.is_all) or not wanted.is_known:
            wanted.must_answer = IS_COMPLETE[kind]
        wanted.is_known = True
        wanted.is_all = (is_all or (wanted.is_all and not names)) and IS_COMPLETE[kind]
        wanted.names = names - {_ALL}
        wanted.due &= wanted.names
        wanted.sent = {name: sent for name, sent in wanted.sent.items() if name in wanted.names}
        if kind is ResourceType.ENDPOINTS:
            self._index(wanted.names)
        if added:
            wanted.due |= added
            wanted.must_answer = IS_COMPLETE[kind]

    def _index(self, names: Collection[str]) -> None:
        self._named = {}
        for name in names:
            if (target := self._resources.target(name)) is not None:
                self._named.setdefault(target.service, set()).add(name)

    def _is_other(self, name: str) -> bool:
        """Whether a target's endpoints differ from what the client has."""
        made = self._resources.encoded_resource(ResourceType.ENDPOINTS, name, self.place)
        return made is not None and made != self._endpoints.sent.get(name)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _names(self, wanted: _Wanted) -> list[str]:
        every = {*wanted.names, *self._resources.names()} if wanted.is_all else wanted.names
        return sorted(name for name in every if self._is_readable(name))

    def _is_readable(self, name: str) -> bool:
        target = self._resources.target(name)
        return target is not None and self._may_read(target.service)

    def _whole(self, kind: ResourceType, wanted: _Wanted) -> bytes | None:
        """All resources, unless the client has exactly these and requested no others."""
        must_answer, wanted.must_answer = wanted.must_answer, False
        wanted.due.clear()
        existing = tuple(name for name in self._names(wanted) if self._resources.exists(name))
        if existing == wanted.shown and not must_answer:
            return None
        wanted.shown = existing
        made = [self._resources.encoded_resource(kind, name, self.place) for name in existing]
        return self._answer(kind, wanted, [resource for resource in made if resource is not None])

    def _part(self, kind: ResourceType, wanted: _Wanted) -> bytes | None:
        """The resources that differ from what the client has; unknown ones are left as they are."""
        made = {name: self._resources.encoded_resource(kind, name, self.place) for name in sorted(wanted.due)}
        wanted.due.clear()
        new = {
            name: resource
            for name, resource in made.items()
            if resource is not None and resource != wanted.sent.get(name) and self._is_readable(name)
        }
        wanted.sent.update(new)
        return self._answer(kind, wanted, new.values()) if new else None

    def _answer(self, kind: ResourceType, wanted: _Wanted, resources: Iterable[bytes]) -> bytes:
        wanted.nonce, body = self._resources.response(kind, resources)
        self._counts.responses[kind.name.lower()] += 1
        return body
