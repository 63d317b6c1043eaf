"""Sets a host's A and AAAA records to its addresses, by DNS updates (RFC 2136) signed with TSIG."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from typing import Final

import dns.asyncquery
import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.tsig
import dns.update

from walle.executors.port import ExecutorFailure, PollResult, Unfit, WorkProgress
from wallepb.v1.host_pb2 import Host

_TIMEOUT_S: Final = 5.0
_TYPES: Final = {4: "A", 6: "AAAA"}
_KNOWN: Final = (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)  # anything else says nothing about the records


@dataclass(frozen=True, slots=True)
class DnsConfig:
    """The primary server of a zone, by its IP address. `key`: TSIG secret in base64; empty: updates are not signed."""

    server: str
    zone: str
    port: int = 53
    ttl_s: int = 300
    key_name: str = ""
    key: str = field(default="", repr=False)
    algorithm: str = "hmac-sha256"


class Dns:
    """The executor. Correct records count as done: sending the same update again changes nothing."""

    def __init__(self, name: str, config: DnsConfig) -> None:
        """Raises ValueError: the zone, the key or the algorithm is not valid."""
        self.name, self._config = name, config
        self._key: dns.tsig.Key | None = None
        try:
            self._zone = dns.name.from_text(config.zone)
            if config.key:
                secret = base64.b64decode(config.key, validate=True)
                self._key = dns.tsig.Key(config.key_name, secret, config.algorithm)
                dns.tsig.get_context(self._key)  # type: ignore[no-untyped-call] # raises: the algorithm is not known
        except (dns.exception.DNSException, NotImplementedError) as error:
            raise ValueError(str(error)) from error

    async def progress_marker(self, host: Host) -> str:
        self._wanted_records(host)
        return ""

    async def begin(self, host: Host) -> str:
        name = self._name(host)
        update = dns.update.UpdateMessage(self._zone)
        for kind, addresses in self._wanted_records(host).items():
            update.delete(name, kind)
            for address in sorted(addresses):
                update.add(name, self._config.ttl_s, kind, address)
        self._sign(update)
        answer = await self._ask(update)
        if answer.rcode() != dns.rcode.NOERROR:
            raise ExecutorFailure(f"{self._config.server} refused the update: {dns.rcode.to_text(answer.rcode())}")
        return "updated"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        for kind, addresses in self._wanted_records(host).items():
            answer = await self._ask(dns.message.make_query(self._name(host), kind))
            if answer.rcode() not in _KNOWN:
                raise ExecutorFailure(f"{self._config.server} refused the query: {dns.rcode.to_text(answer.rcode())}")
            found = {
                str(item) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.from_text(kind) for item in rrset
            }
            if found != addresses:
                return PollResult(WorkProgress.NOT_BEGUN, f"{kind} is {', '.join(sorted(found)) or 'missing'}")
        return PollResult(WorkProgress.DONE, f"{host.name} resolves to {', '.join(host.address)}")

    def _wanted_records(self, host: Host) -> dict[str, set[str]]:
        if not host.address:
            raise Unfit(f"host {host.name} has no addresses in Wall-E: add them")
        wanted: dict[str, set[str]] = {kind: set() for kind in _TYPES.values()}
        for text in host.address:
            try:
                address = ipaddress.ip_address(text)
            except ValueError as error:
                raise Unfit(f"host {host.name}: {error}") from error
            wanted[_TYPES[address.version]].add(str(address))
        return wanted

    def _name(self, host: Host) -> dns.name.Name:
        name = dns.name.from_text(host.name)
        if not name.is_subdomain(self._zone):
            raise Unfit(f"host {host.name} is not in zone {self._config.zone}")
        return name

    def _sign(self, update: dns.update.UpdateMessage) -> None:
        if self._key is not None:
            update.use_tsig(self._key, algorithm=self._key.algorithm)

    async def _ask(self, message: dns.message.Message) -> dns.message.Message:
        try:
            return await dns.asyncquery.tcp(message, self._config.server, timeout=_TIMEOUT_S, port=self._config.port)
        except (dns.exception.DNSException, OSError) as error:
            raise ExecutorFailure(f"{self._config.server}: {type(error).__name__}: {error}") from error
