"""The common part of both forms of streams: client, its place, its rights, and which services concern it. No I/O."""

from __future__ import annotations

import ipaddress
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from gateways.xds.fixed_resources import TO_ALL, ResourceType, encode_listener
from gateways.xds.resources import Resources
from serving.errors import invalid
from xdspb.v1 import xds_pb2 as pb

log = logging.getLogger(__name__)

MOST_NAMES: Final = 1_000  # and as many more as there are services
MOST_CHARACTERS: Final = 1_000  # of a name
MOST_WORDS: Final = 500
ALL: Final = "*"
LISTEN: Final = "hq-listen"  # in the metadata of an Envoy's node


@dataclass(slots=True)
class XdsCounts:
    """Counters summed over all streams.

    Attributes:
        responses, acks, nacks: by type.
        streams: how many are open.
    """

    responses: Counter[str] = field(default_factory=Counter)
    acks: Counter[str] = field(default_factory=Counter)
    nacks: Counter[str] = field(default_factory=Counter)
    streams: int = 0


@dataclass(slots=True)
class WantedType:
    """A stream's subscription to one type.

    Attributes:
        names: those wanted by name; `is_all`: all others, too.
        due: names to look at.
        must_answer: even if there is nothing: the client waits for an answer.
        has_earlier: the client came with resources of an earlier stream, and the list was never complete since.
    """

    names: set[str] = field(default_factory=set)
    is_all: bool = False
    due: set[str] = field(default_factory=set)
    must_answer: bool = False
    has_earlier: bool = False


class XdsStream(ABC):
    """The state of one stream.

    Attributes:
        place: where the client is: a location of HQ, by the zone or region that it reports.
        peer: its name, for messages.
        listen: where an Envoy listens; None: the client said nothing of it.
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
        self.listen: tuple[str, int] | None = None
        self._named: dict[str, set[str]] = {}  # by service, names of endpoints that are wanted
        self._noted: tuple[Collection[str], tuple[str, int] | None] = (), None  # what there was at the last change

    @property
    def services(self) -> Collection[str]:
        """Services whose changes this stream subscribes to."""
        return self._named.keys()

    @property
    @abstractmethod
    def wants_all(self) -> bool:
        """Whether it wants whatever there is, so that every new service concerns it."""

    @abstractmethod
    def request(self, request: Any, locations: Collection[str] = ()) -> None:
        """Handle a request. `locations`: those of HQ, to which the client's place must belong.

        Raises:
            InvalidRequest: it wants too many names.
        """

    @abstractmethod
    def on_services_changed(self, services: Collection[str]) -> bool:
        """These services changed; none: what is known as a whole. Returns whether an answer may be due."""

    @abstractmethod
    def due(self) -> Iterator[bytes]:
        """The answers that are due, encoded, each made when it is taken."""

    # --- for both forms -----------------------------------------------------------------------------------------------

    def _read_kind(self, request: Any, locations: Collection[str]) -> ResourceType | None:
        """Take note of the client, and return the type that it asks for; None: it is not served."""
        if request.HasField("node"):
            self._set_peer(request.node, locations)
        try:
            return ResourceType(request.type_url)
        except ValueError:
            log.info("xDS: %s subscribes to %s, which is not served here", self.peer, request.type_url[:MOST_WORDS])
            return None

    def _set_peer(self, node: pb.Node, locations: Collection[str]) -> None:
        self.peer = node.id[:100] or self.peer
        said = [node.locality.zone, node.locality.region]
        self.place = next((one for one in said if one and one in locations), self.place)
        if self.listen is None and LISTEN in node.metadata.fields:  # it stays what the first request said
            self.listen = _read_address(node.metadata.fields[LISTEN].string_value)

    def _check_names(self, field_name: str, names: Iterable[str], count: int) -> None:
        """`names`: new ones; `count`: of all that the stream has then."""
        most = MOST_NAMES + 2 * self._resources.count
        if count > most:
            raise invalid(field_name, f"{count} names, of {most} allowed on one stream")
        longest = max(map(len, names), default=0)
        if longest > MOST_CHARACTERS:  # they are kept, and each condition is compared with each instance
            raise invalid(field_name, f"a name of {longest} characters, of {MOST_CHARACTERS} allowed")

    def _on_rejected(self, kind: ResourceType, names: Collection[str], message: str) -> None:
        self._counts.nacks[kind.name.lower()] += 1
        log.error(
            "xDS: %s rejects (NACK) %s of %s and keeps the last version: %s",
            self.peer,
            kind.name.lower(),
            ", ".join(sorted(names))[:MOST_WORDS],
            message[:MOST_WORDS],
        )

    def _index(self, names: Collection[str]) -> None:
        """Note the names of endpoints that are wanted."""
        self._named = {}
        for name in names:
            if (target := self._resources.target(name)) is not None:
                self._named.setdefault(target.service, set()).add(name)

    # --- what the client may be told of -------------------------------------------------------------------------------

    def _all_names(self, kind: ResourceType) -> Collection[str]:
        """All names, for a client that requests all: an Envoy, which would refuse the listeners for gRPC's clients."""
        if kind is ResourceType.LISTENER:
            return () if self.listen is None else (TO_ALL,)
        return self._resources.listed

    def _is_listed_anew(self, services: Collection[str]) -> bool:
        """Whether the list may differ from that of the last change; `services`: those that changed, none: any may have.

        Most changes are of instances only: they must not cost every Envoy a look at the whole list.
        """
        before, self._noted = self._noted, (self._resources.listed, self.listen)
        return not services or before[0] is not self._noted[0] or before[1] != self.listen

    def _is_readable(self, kind: ResourceType, name: str) -> bool:
        """Whether it exists for this client."""
        if name == TO_ALL:
            return self.listen is not None and kind in (ResourceType.LISTENER, ResourceType.ROUTES)
        target = self._resources.target(name)
        return target is not None and self._may_read(target.service)

    def _resource(self, kind: ResourceType, wanted: WantedType, name: str) -> bytes | None:
        """A readable resource, encoded; None: nobody knows, so the client keeps what it has."""
        if name != TO_ALL:
            return self._resources.encoded_resource(kind, name, self.place)
        if kind is ResourceType.LISTENER:
            return encode_listener(*self.listen) if self.listen is not None else None
        return self._resources.routes_to_all(self._may_read) if self._may_list(wanted) else None

    def _may_list(self, wanted: WantedType) -> bool:
        """Whether the list may be sent: the client deletes what it lacks.

        So a client waits until there is a list, and one that has resources already until the list is complete.
        """
        if self._resources.is_complete:
            wanted.has_earlier = False
        return self._resources.is_known and not wanted.has_earlier


def _read_address(text: str) -> tuple[str, int] | None:
    """HOST:PORT of an Envoy's metadata; None: it is none."""
    host, _, port = text.rpartition(":")
    try:
        address, number = str(ipaddress.ip_address(host.strip("[]"))), int(port)
    except ValueError:
        address, number = "", 0
    if not 0 < number < 65_536:
        log.warning("xDS: %s %r is not ADDRESS:PORT: no listener is sent", LISTEN, text[:100])
        return None
    return address, number
