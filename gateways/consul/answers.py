"""JSON of the answers, from the picture."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateways.consul import indexes, render
from gateways.consul.filters import FilterError, parse_filter
from gateways.consul.indexes import ConsulIndexes, Topic
from gateways.consul.questions import ABOUT_THE_GATEWAY, ConsulError, Question, QuestionKind
from gateways.picture.knowledge import Knowledge
from gateways.picture.picture import EndpointView
from hqclient.discovery import KnownInstance
from hqclient.discovery.endpoint import Key
from serving.rights.access import Access

_MOST_BODIES: Final = 1_024
_MOST_BYTES: Final = 64 * 2**20  # of all bodies that are kept, and one more: a filter may select everything
_BodyKey = tuple[QuestionKind, str, bool, tuple[str, ...], str, str]
_Show = Callable[[KnownInstance, int, Sequence[str], str], dict[str, Any]]
_FILTERED: Final[dict[QuestionKind, _Show]] = {
    QuestionKind.HEALTH_SERVICE: render.entry,
    QuestionKind.CONNECT: render.entry,
    **dict.fromkeys(
        (QuestionKind.HEALTH_CHECKS, QuestionKind.HEALTH_NODE, QuestionKind.HEALTH_STATE),
        lambda one, index, _, status: render.check(one, index, status),
    ),
    **dict.fromkeys(
        (QuestionKind.SERVICES, QuestionKind.SERVICE),
        lambda one, index, ports, _: render.catalog_entry(one, index, ports),
    ),
    QuestionKind.NODES: lambda one, _, __, ___: render.node(one, 1),
    **dict.fromkeys(
        (QuestionKind.NODE, QuestionKind.NODE_SERVICES, QuestionKind.OWN),
        lambda one, index, ports, _: render.service(one, index, ports),
    ),
}
"""What a filter looks at: one instance as the answers to these questions show it."""
_BARE: Final = KnownInstance("", "", 0, "", "", "", {}, {}, (), True, 0)
_TOPICS: Final = {QuestionKind.SERVICES: indexes.CATALOG, QuestionKind.NODES: indexes.NODES}


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """How the gateway presents itself.

    Attributes:
        datacenter: the location used for requests that name none; empty: all locations.
        ports: names of ports in the order in which they become a service's port.
        version: of HQ.
    """

    datacenter: str = ""
    ports: Sequence[str] = ("http", "grpc")
    version: str = ""


class ConsulAnswers:
    """Makes bodies. Those about instances are cached until their index changes; a part until its instance changes.

    A body that is rebuilt after an unrelated change has the same bytes, by which blocking queries recognise it.
    """

    def __init__(self, settings: ConsulSettings, picture: EndpointView, of: ConsulIndexes) -> None:
        self._settings, self._picture, self._indexes = settings, picture, of
        self._entries: dict[Key, tuple[KnownInstance, str, bytes]] = {}
        self._bodies: dict[_BodyKey, tuple[int, bytes]] = {}
        self._kept_bytes = 0  # of all bodies
        self._by_kind: dict[QuestionKind, Callable[[Question, Access], bytes]] = {
            QuestionKind.HEALTH_SERVICE: self._health_service,
            QuestionKind.HEALTH_CHECKS: self._checks,
            QuestionKind.HEALTH_NODE: self._checks,
            QuestionKind.HEALTH_STATE: self._checks,
            QuestionKind.SERVICE_STATUS: lambda *asked: render.encode_json(self._agent_health(*asked)),
            QuestionKind.INSTANCE_STATUS: lambda *asked: render.encode_json(self._agent_health(*asked)[0]),
            QuestionKind.SERVICES: self._services,
            QuestionKind.SERVICE: self._service,
            QuestionKind.NODES: self._nodes,
            QuestionKind.NODE: self._node,
            QuestionKind.NODE_SERVICES: self._node_services,
            QuestionKind.CONNECT: lambda *_: b"[]",  # nothing is a proxy of a mesh
            QuestionKind.OWN: lambda *_: b"{}",  # nothing is ever registered with this agent
            QuestionKind.DATACENTERS: lambda *_: render.encode_json(self._datacenters()),
            QuestionKind.SELF: lambda *_: render.encode_json(self._self()),
            QuestionKind.LEADER: lambda *_: render.encode_json("127.0.0.1:8300"),
            QuestionKind.PEERS: lambda *_: render.encode_json(["127.0.0.1:8300"]),
        }
        picture.listen(self._on_services_changed)

    def topic(self, question: Question) -> Topic:
        """The topic whose index applies to a question."""
        return indexes.service_topic(question.service) if question.service else _TOPICS.get(question.kind, indexes.ALL)

    def body(self, question: Question, access: Access) -> bytes:
        """The answer.

        Raises:
            ConsulError: 500 while nothing is known about the subject or the datacenter.
            PermissionDenied: the caller may not read the service.
        """
        if question.service:
            access.check_filter((question.service,), ())
        self._check_known(question)
        self._filter(question)  # refuses a bad filter, even if no instance will be looked at
        if not access.is_unlimited or not question.is_about_instances:
            return self._by_kind[question.kind](question, access)
        asked, index = _body_key(question), self._indexes.current(self.topic(question))
        kept = self._bodies.get(asked)
        if kept is None or kept[0] != index:
            kept = index, self._by_kind[question.kind](question, access)
            self._keep(asked, kept)
        return kept[1]

    def _keep(self, asked: _BodyKey, made: tuple[int, bytes]) -> None:
        _, before = self._bodies.pop(asked, (0, b""))
        self._kept_bytes += len(made[1]) - len(before)
        if len(self._bodies) >= _MOST_BODIES or self._kept_bytes > _MOST_BYTES:
            self._bodies.clear()
            self._kept_bytes = len(made[1])
        self._bodies[asked] = made

    def _check_known(self, question: Question) -> None:
        """An empty list is only sent once every location has confirmed that there are no instances."""
        if question.kind in ABOUT_THE_GATEWAY:
            return
        coverage, datacenter = self._picture.coverage, question.datacenter
        if datacenter and coverage.is_complete and datacenter not in coverage.locations:
            raise ConsulError(500, f"No path to datacenter: HQ has no location {datacenter[:80]!r}")
        if question.service:
            unknown = self._picture.knowledge(question.service, self._location(question)) is Knowledge.UNKNOWN
        else:
            unknown = not coverage.is_known or not (self._picture.services or coverage.is_complete)
        if unknown:
            what = f"service {question.service[:80]}" if question.service else "any service"
            raise ConsulError(500, f"No cluster leader: nothing is known about {what} yet; retry")

    def _location(self, question: Question) -> str:
        return question.datacenter or self._settings.datacenter

    # --- which instances ----------------------------------------------------------------------------------------------

    def _matching_instances(self, question: Question, access: Access) -> Iterator[tuple[KnownInstance, str]]:
        """Matching instances, each with its status."""
        names = [question.service] if question.service else filter(access.may_touch_service, self._picture.services)
        holds = self._filter(question)
        for name in sorted(names):
            for one, status in self._service_instances(name, question):
                if question.passing and status != render.PASSING:
                    continue
                # A filter takes time, which would be others' time for instances that are not shown.
                is_seen = question.service or access.covers(one.service, one.node, cluster=one.cluster)
                if is_seen and holds(one, status):
                    yield one, status

    def _filter(self, question: Question) -> Callable[[KnownInstance, str], bool]:
        """Whether an instance with a status is selected. Raises ConsulError: 400 naming the position."""
        if not question.filter:
            return lambda *_: True
        show, ports = _FILTERED.get(question.kind), self._settings.ports
        if show is None:
            raise ConsulError(400, "filter is not supported for this question")
        try:
            holds = parse_filter(question.filter, show(_BARE, 0, ports, render.PASSING))
        except FilterError as error:
            raise ConsulError(400, f"filter: {error}") from error
        return lambda one, status: holds(show(one, self._index(one), ports, status))

    def _service_instances(self, name: str, question: Question) -> Iterator[tuple[KnownInstance, str]]:
        """Instances of one service, location and tags. If all ready ones have weight 0, all of them take traffic."""
        location, wanted = self._location(question), set(question.tags)
        known = self._picture.instances(name)
        every = [known[key] for key in sorted(known) if location in ("", key[0])]
        if wanted:
            every = [one for one in every if wanted.issubset(render.tags(one))]
        is_weighed = any(one.weight for one in every if one.is_ready)
        for one in every:
            yield one, render.status(one, has_traffic=bool(one.weight) or not is_weighed)

    # --- bodies -------------------------------------------------------------------------------------------------------

    def _health_service(self, question: Question, access: Access) -> bytes:
        return b"[" + b",".join([self._entry(*one) for one in self._matching_instances(question, access)]) + b"]"

    def _entry(self, instance: KnownInstance, status: str) -> bytes:
        kept = self._entries.get(instance.key)
        if kept is None or kept[0] is not instance or kept[1] != status:
            made = render.encode_json(render.entry(instance, self._index(instance), self._settings.ports, status))
            kept = self._entries[instance.key] = instance, status, made
        return kept[2]

    def _index(self, instance: KnownInstance) -> int:
        return self._indexes.instance_index(instance)

    def _service(self, question: Question, access: Access) -> bytes:
        ports = self._settings.ports
        found = [
            render.catalog_entry(one, self._index(one), ports) for one, _ in self._matching_instances(question, access)
        ]
        return render.encode_json(found)

    def _checks(self, question: Question, access: Access) -> bytes:
        wanted = question.name if question.kind is QuestionKind.HEALTH_STATE else "any"
        node = question.name if question.kind is QuestionKind.HEALTH_NODE else ""
        return render.encode_json(
            [
                render.check(one, self._index(one), status)
                for one, status in self._matching_instances(question, access)
                if wanted in ("any", status) and node in ("", one.node)
            ]
        )

    def worst_status(self, question: Question, access: Access) -> str:
        """The worst status of all that a request to /v1/agent/health asks about. Raises ConsulError."""
        found = {one["AggregatedStatus"] for one in self._agent_health(question, access)}
        return next(status for status in (render.CRITICAL, render.WARNING, render.PASSING) if status in found)

    def _agent_health(self, question: Question, access: Access) -> list[dict[str, Any]]:
        """Health of a service or an instance, by name or id. Raises ConsulError: 404, or 500 while it is unknown."""
        found = [
            {
                "AggregatedStatus": status,
                "Service": render.service(one, self._index(one), self._settings.ports),
                "Checks": [render.check(one, self._index(one), status)],
            }
            for one, status in self._matching_instances(question, access)
            if question.service or one.id == question.name
        ]
        if not found and not self._picture.coverage.is_complete:
            raise ConsulError(500, f"No cluster leader: nothing is known about {question.name[:80]} yet; retry")
        if not found:
            raise ConsulError(404, f"HQ has no {question.name[:80]!r}")
        return found

    def _services(self, question: Question, access: Access) -> bytes:
        found: dict[str, set[str]] = {}
        for one, _ in self._matching_instances(question, access):
            found.setdefault(one.service, set()).update(render.tags(one))
        return render.encode_json({name: sorted(tags) for name, tags in sorted(found.items())})

    def _nodes(self, question: Question, access: Access) -> bytes:
        found = {(one.cluster, one.node): render.node(one, 1) for one, _ in self._matching_instances(question, access)}
        return render.encode_json([found[key] for key in sorted(found)])

    def _node(self, question: Question, access: Access) -> bytes:
        here = self._services_of_node(question, access)
        return render.encode_json(here and {"Node": here[0], "Services": {one["ID"]: one for one in here[1]}})

    def _node_services(self, question: Question, access: Access) -> bytes:
        here = self._services_of_node(question, access)
        return render.encode_json(here and {"Node": here[0], "Services": here[1]})

    def _services_of_node(self, question: Question, access: Access) -> tuple[dict[str, Any], list[Any]] | None:
        """The node, and its instances as services; None: it has none."""
        here = [one for one, _ in self._matching_instances(question, access) if one.node == question.name]
        services = [render.service(one, self._index(one), self._settings.ports) for one in here]
        return (render.node(here[0], 1), services) if here else None

    def _datacenters(self) -> list[str]:
        return sorted(self._picture.coverage.locations | {one for one in [self._settings.datacenter] if one}) or ["hq"]

    def _self(self) -> dict[str, Any]:
        locations = self._datacenters()
        own = self._settings.datacenter or (locations[0] if len(locations) == 1 else "hq")
        config = {
            "Datacenter": own,
            "PrimaryDatacenter": own,
            "NodeName": "hq-gateway",
            "NodeID": "",
            "Revision": "",
            "Server": True,
            "Version": self._settings.version,
        }
        member = {"Name": "hq-gateway", "Addr": "127.0.0.1", "Port": 8301, "Tags": {"dc": own}, "Status": 1}
        return {"Config": config, "DebugConfig": {}, "Coord": None, "Member": member, "Meta": {}, "Stats": {}}

    def _on_services_changed(self, services: Collection[str]) -> None:
        """Entries of deleted instances are dropped once they outnumber the others."""
        if len(self._entries) > 1_000 + 2 * sum(len(self._picture.instances(name)) for name in self._picture.services):
            self._entries.clear()


def _body_key(question: Question) -> _BodyKey:
    """The parts of a question that its answer depends on."""
    return question.kind, question.name, question.passing, question.tags, question.datacenter, question.filter
