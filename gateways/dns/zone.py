"""The zone: answers questions from the picture."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gateways.dns import wire
from gateways.dns.names import NameKind, NameRequest, Selection, instance_labels, is_label, parse_name
from gateways.dns.spread import Spread
from gateways.dns.wire import Code, DnsQuery, RecordType
from gateways.picture.addresses import Addressing, EndpointAddress, EndpointAddresses
from gateways.picture.knowledge import Knowledge
from gateways.picture.picture import EndpointView
from hqclient.discovery import KnownInstance
from hqclient.discovery.endpoint import with_traffic

_HINFO: Final = wire.texts(["RFC8482", ""])  # RFC 8482: ANY is answered with one small record
_FAMILY: Final = {RecordType.A: 4, RecordType.AAAA: 6}
_MOST_SRV_WEIGHT: Final = 65_535
_MOST_ANSWERS: Final = 16_384
_MOST_ADDRESSES: Final = 200_000


@dataclass(frozen=True, slots=True)
class ZoneSettings:
    """The zone's name and the TTL of its answers.

    Attributes:
        zone: its labels, in lower case.
        ttl_s: of all records, negative answers included.
        server: address of the name server itself; empty: not published.
    """

    zone: tuple[bytes, ...]
    ttl_s: int = 1
    server: str = ""


@dataclass(frozen=True)
class ZoneAnswer:
    """An answer, not yet encoded.

    Attributes:
        records: owner, kind and data of each, encoded.
        extra: for each record the addresses of its target, without their owner; empty: records have no targets.
        is_denial: the SOA is sent, from which resolvers take the negative TTL.
        any_order: records (one per address) are sent in random order; some of them are as good as all.
        service: the service whose change invalidates it; empty: none.
        may_be_kept: it may be cached until then.
    """

    code: Code = Code.NOERROR
    records: Sequence[bytes] = ()
    extra: Sequence[Sequence[bytes]] = ()
    is_denial: bool = False
    any_order: bool = False
    service: str = ""
    may_be_kept: bool = True

    @cached_property
    def spread(self) -> Spread:
        """Which of the records an address gets first."""
        # Records with a target are spread by that alone: a changed weight must not give an address other targets.
        return Spread([record[wire.SRV_TARGET_AT :] for record in self.records] if self.extra else self.records)


_REFUSED: Final = ZoneAnswer(Code.REFUSED)


class Zone:
    """Answers questions from the picture. Nothing it does waits.

    Records are kept until their service changes, under the name in lower case: a question in another case, as resolvers
    randomise it against forgery, costs no more. Denials are not cached, so invented names cannot evict real ones.
    """

    def __init__(self, settings: ZoneSettings, picture: EndpointView, addressing: Addressing, serial: int) -> None:
        """`serial`: of the zone at the beginning; it moves with every change."""
        self.settings, self._picture, self._addressing, self._serial = settings, picture, addressing, serial
        self._selections: dict[str, Selection] = {}
        self._answers: dict[str, dict[tuple[tuple[bytes, ...], int], ZoneAnswer]] = {}  # by service
        self._answers_kept = 0
        self._encoded: dict[str, bytes] = {}  # data of addresses, behind the owner's name
        picture.listen(self._on_services_changed)
        self._server_name = wire.name(b"ns", *settings.zone)
        self._mailbox = wire.name(b"hostmaster", *settings.zone)
        self._by_kind: dict[NameKind, Callable[[NameRequest, DnsQuery], ZoneAnswer]] = {
            NameKind.OUTSIDE: lambda *_: _REFUSED,
            NameKind.NOTHING: lambda *_: ZoneAnswer(Code.NXDOMAIN, is_denial=True),
            NameKind.APEX: self._answer_apex,
            NameKind.SERVER: self._answer_server,
            NameKind.BETWEEN: self._answer_non_terminal,
            NameKind.SERVICE: self._answer_service,
            NameKind.WHY: self._why,
        }

    @property
    def unnamed_services(self) -> int:
        """Services whose id is not a valid DNS label."""
        return sum(not is_label(name) for name in self._picture.services)

    def answer(self, query: DnsQuery) -> ZoneAnswer:
        """The answer to a question."""
        if query.cls != wire.IN or query.type in (RecordType.AXFR, RecordType.IXFR):
            return _REFUSED
        if query.type == RecordType.OPT:
            return ZoneAnswer(Code.FORMERR)
        asked = parse_name(query.labels, self.settings.zone)
        kept = self._answers.get(asked.service, {}).get((query.labels, query.type)) if asked.service else None
        if kept is not None:
            return kept
        said = self._by_kind[asked.kind](asked, query)
        if query.type == RecordType.ANY and said.code is Code.NOERROR:
            return ZoneAnswer(records=[self._record(RecordType.HINFO, _HINFO)])
        if said.service and said.records and said.may_be_kept:
            self._keep(said, query)
        return said

    def _keep(self, said: ZoneAnswer, query: DnsQuery) -> None:
        if self._answers_kept >= _MOST_ANSWERS:
            self._on_services_changed(())
        self._answers.setdefault(said.service, {})[query.labels, query.type] = said
        self._answers_kept += 1

    def _on_services_changed(self, services: Collection[str]) -> None:
        """Called by the picture: these services changed; none: what is known as a whole."""
        for service in services or [*self._answers]:
            self._answers_kept -= len(self._answers.pop(service, ()))
        for service in services or [*self._selections]:
            self._selections.pop(service, None)

    def soa(self, owner: bytes) -> bytes:
        """The current SOA record."""
        ttl_s, serial = self.settings.ttl_s, self._serial + self._picture.changes
        return wire.record(owner, RecordType.SOA, ttl_s, wire.soa(self._server_name, self._mailbox, serial, ttl_s))

    # --- the zone itself ----------------------------------------------------------------------------------------------

    def _answer_apex(self, _: NameRequest, query: DnsQuery) -> ZoneAnswer:
        if query.type == RecordType.SOA:
            return ZoneAnswer(records=[self.soa(wire.TO_QUESTION)], may_be_kept=False)
        if query.type == RecordType.NS:
            return ZoneAnswer(records=[self._record(RecordType.NS, self._server_name)])
        return _no_data()

    def _answer_server(self, _: NameRequest, query: DnsQuery) -> ZoneAnswer:
        server = self.settings.server
        return ZoneAnswer(records=[self._address(server)]) if server and _is_of(server, query.type) else _no_data()

    def _answer_non_terminal(self, asked: NameRequest, _: DnsQuery) -> ZoneAnswer:
        if asked.service:
            return self._absence_answer(asked) or _no_data(asked.service)
        if not asked.location or asked.location in self._picture.coverage.locations:
            return _no_data()
        return ZoneAnswer(Code.NXDOMAIN if self._picture.coverage.is_complete else Code.SERVFAIL, is_denial=True)

    # --- services -----------------------------------------------------------------------------------------------------

    def _absence_answer(self, asked: NameRequest) -> ZoneAnswer | None:
        """The answer for a service without instances; None: it has some."""
        if not is_label(asked.service):
            return ZoneAnswer(Code.NXDOMAIN, is_denial=True)
        match self._picture.knowledge(asked.service, asked.location):
            case Knowledge.UNKNOWN:
                return ZoneAnswer(Code.SERVFAIL, service=asked.service)
            case Knowledge.ABSENT:
                return ZoneAnswer(Code.NXDOMAIN, is_denial=True, service=asked.service)
            case Knowledge.PRESENT:
                return None

    def _answer_service(self, asked: NameRequest, query: DnsQuery) -> ZoneAnswer:
        if said := self._absence_answer(asked):
            return said
        if query.type == RecordType.SRV and asked.port:
            places = self._addressing.places(self._choose_instances(asked), asked.port)
            return self._unknown_address_answer(asked, places) or self._locations(asked, places.found)
        if query.type in _FAMILY and not asked.port:
            places = self._addressing.places(self._choose_instances(asked))
            return self._unknown_address_answer(asked, places) or self._addresses(asked, places.found, query.type)
        return _no_data(asked.service)

    def _choose_instances(self, asked: NameRequest) -> Sequence[KnownInstance]:
        """Choose the instances for a name. A name of a single instance selects it whatever its weight."""
        return with_traffic(self._selection(asked.service).matching_instances(asked))

    def _selection(self, service: str) -> Selection:
        if service not in self._selections:
            self._selections[service] = Selection(self._picture.ready(service))
        return self._selections[service]

    def _unknown_address_answer(self, asked: NameRequest, places: EndpointAddresses) -> ZoneAnswer | None:
        """SERVFAIL if no address of the ready instances is known: that must not become an empty answer; else None."""
        return ZoneAnswer(Code.SERVFAIL, service=asked.service) if places.is_unknown else None

    def _addresses(self, asked: NameRequest, places: Sequence[EndpointAddress], kind: int) -> ZoneAnswer:
        unique = dict.fromkeys(place.address for place in places if _is_of(place.address, kind))
        records = [self._address(address) for address in unique]
        return (
            ZoneAnswer(records=records, any_order=True, service=asked.service) if records else _no_data(asked.service)
        )

    def _locations(self, asked: NameRequest, places: Sequence[EndpointAddress]) -> ZoneAnswer:
        if not places:
            return _no_data(asked.service)
        addresses: dict[tuple[KnownInstance, int], list[bytes]] = {}
        for place in places:
            addresses.setdefault((place.instance, place.port), []).append(self._address(place.address, b""))
        most = max(instance.weight for instance, _ in addresses) or 1
        records = [self._location(instance, port, most) for instance, port in addresses]
        return ZoneAnswer(records=records, extra=[*addresses.values()], service=asked.service)

    def _location(self, instance: KnownInstance, port: int, most: int) -> bytes:
        """An SRV record. The largest weight becomes the largest of SRV: HAProxy sees steps of 256 only."""
        weight = max(1, (instance.weight or most) * _MOST_SRV_WEIGHT // most)
        return self._record(RecordType.SRV, wire.srv(1, weight, port, self._target(instance)))

    def _target(self, instance: KnownInstance) -> bytes:
        """The instance's own name: clients take records with the same target for one server."""
        return wire.name(*[label.encode() for label in instance_labels(instance)], *self.settings.zone)

    def _why(self, asked: NameRequest, query: DnsQuery) -> ZoneAnswer:
        if said := self._absence_answer(asked):
            return said
        if query.type != RecordType.TXT:
            return _no_data(asked.service)
        lines = self._lines(asked)
        records = [wire.record(wire.TO_QUESTION, RecordType.TXT, 0, wire.texts([line])) for line in lines]
        return ZoneAnswer(records=records, may_be_kept=False)

    def _lines(self, asked: NameRequest) -> list[str]:
        condition, known = self._picture.condition, self._picture.instances(asked.service).values()
        here = [one for one in known if asked.location in ("", one.cluster)]
        lines = [f"ready: {sum(one.is_ready for one in here)} of {len(here)} instances"]
        age = f"{condition.age_s:.1f} s" if math.isfinite(condition.age_s) else "unknown"
        lines.append(f"age: {age}, {condition.source.name.lower()}{', stale' if condition.stale else ''}")
        missing = self._picture.missing
        lines += [f"missing locations: {', '.join(sorted(missing))}"] * bool(missing)
        lines += [f"doubt: {condition.doubt}"] * bool(condition.doubt)
        return lines

    # --- records ------------------------------------------------------------------------------------------------------

    def _record(self, kind: int, data: bytes) -> bytes:
        return wire.record(wire.TO_QUESTION, kind, self.settings.ttl_s, data)

    def _address(self, address: str, owner: bytes = wire.TO_QUESTION) -> bytes:
        kept = self._encoded.get(address)
        if kept is None:
            if len(self._encoded) >= _MOST_ADDRESSES:
                self._encoded.clear()
            parsed = ipaddress.ip_address(address)
            kind = RecordType.A if parsed.version == 4 else RecordType.AAAA
            kept = self._encoded[address] = wire.record(b"", kind, self.settings.ttl_s, parsed.packed)
        return owner + kept


def _no_data(service: str = "") -> ZoneAnswer:
    return ZoneAnswer(is_denial=True, service=service)


def _is_of(address: str, kind: int) -> bool:
    return kind in _FAMILY and (":" in address) == (kind == RecordType.AAAA)
