"""Where Wall-E may call, and which credential is sent there and nowhere else. No I/O.

Callers of the API choose addresses of CMSs, management controllers and webhooks. So an address is parsed strictly, and
it is called only if an entry of the configuration matches it.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass, field, replace
from ssl import SSLContext
from typing import Final, NamedTuple

from serving.rights.patterns import Patterns

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::([0-9]{1,5}))?")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_URL: Final = re.compile(r"([Hh][Tt][Tt][Pp][Ss]?)://([^/?#]*)((?:/[A-Za-z0-9._~:@!$&'()*+,;=-]+)*)/?(\?[!-~]*)?")
_LONGEST_NAME: Final = 253
_LONGEST_URL: Final = 2000
_EVERY_NODE: Final = Patterns(["*"])


class BadAddress(ValueError):
    """A text is not an address; the message says how to write one."""


class Address(NamedTuple):
    """A host and a port. `host`: a name in lower case, or an IP address; `port` 0: none was given."""

    host: str
    port: int = 0

    @property
    def ip(self) -> IpAddress | None:
        """The host as an IP address; None: it is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else host


def parse_address(text: str) -> Address:
    """HOST or HOST:PORT, an IPv6 address in brackets. Raises BadAddress."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise BadAddress(f"{text[:80]!r} is not a valid address: write HOST or HOST:PORT")
    port = int(found[2] or 0)
    if port > 65535 or (found[2] and not port):
        raise BadAddress(f"{text[:80]!r}: the port is not one of 1 to 65535")
    host = found[1].strip("[]").lower()
    if found[1].startswith("[") or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        # A resolver reads 127.1, 0x7f.1 and 2130706433 as addresses, too: only the usual form is one.
        return Address(str(_parse_ip(text, host)), port)
    if len(host) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise BadAddress(f"{text[:80]!r} is not a valid name of a host")
    return Address(host, port)


def _parse_ip(text: str, host: str) -> IpAddress:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError as error:
        raise BadAddress(f"{text[:80]!r} is not a valid IP address") from error
    return plain_ip(ip)


def plain_ip(ip: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 one stands for, else the same."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip


class Url(NamedTuple):
    """An http(s) URL without a user and a fragment; `path` without a slash at its end, `query` with its `?`."""

    scheme: str
    address: Address
    path: str = ""
    query: str = ""

    @property
    def usual_port(self) -> int:
        return 80 if self.scheme == "http" else 443

    @property
    def port(self) -> int:
        return self.address.port or self.usual_port

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}{self.path}{self.query}"


def parse_url(text: str, *, may_query: bool = False) -> Url:
    """Raises BadAddress."""
    found = _URL.fullmatch(text) if len(text) <= _LONGEST_URL else None
    if found is None:
        raise BadAddress(f"{text[:80]!r} is not a valid URL: write http(s)://HOST[:PORT][/PATH]")
    if found[4] and not may_query:
        raise BadAddress(f"{text[:80]!r}: a query does not belong here")
    if {".", ".."} & set(found[3].split("/")):
        raise BadAddress(f"{text[:80]!r}: write the path without dots")
    return Url(found[1].lower(), parse_address(found[2]), found[3], found[4] or "")


def one_spelling(text: str) -> str:
    """The one spelling of all URLs that mean the same: without the usual port, for example. Raises BadAddress."""
    url = parse_url(text)
    is_usual = url.address.port == url.usual_port
    return str(url._replace(address=url.address._replace(port=0)) if is_usual else url)


def not_listed(section: str, tvm_app_id: str = "") -> str:
    """Why an address is not called."""
    asked = f" with tvm_app_id {tvm_app_id}" if tvm_app_id else ""
    return f"no entry of `{section}` in the server's configuration lists it{asked}"


def is_special(ip: IpAddress) -> bool:
    """Whether an address is loopback, link-local, unspecified or multicast: only entries that name it match."""
    return ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast


@dataclass(frozen=True, slots=True)
class AllowedEndpoint:
    """A URL that may be called, with all that is below it.

    Attributes:
        token: sent there as a bearer token; empty: none is.
        tls: trusts the CA of this destination; None: the usual ones.
    """

    url: Url
    token: str = field(default="", repr=False)
    tls: SSLContext | None = None

    def headers(self) -> dict[str, str]:
        """The credential."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def covers(self, url: Url) -> bool:
        mine = self.url
        is_same = (mine.scheme, mine.address.host, mine.port) == (url.scheme, url.address.host, url.port)
        return is_same and f"{url.path}/".startswith(f"{mine.path}/")


@dataclass(frozen=True, slots=True)
class CmsEndpoint(AllowedEndpoint):
    """A CMS. `tvm_app_id`: the name by which projects ask for the token."""

    tvm_app_id: str = ""


@dataclass(frozen=True, slots=True)
class Controllers:
    """Management controllers (BMCs) that may be called, and the account that is used there.

    Attributes:
        match: a network in CIDR notation, or the end of names, whole labels only.
        port: 0: the usual one of the scheme.
        nodes: names of the hosts that these controllers belong to.
        tls: trusts their CA; None: the usual ones.
    """

    match: IpNetwork | str
    port: int = 0
    nodes: Patterns = _EVERY_NODE
    user: str = ""
    password: str = field(default="", repr=False)
    tls: SSLContext | None = None

    def headers(self) -> dict[str, str]:
        """The credential."""
        both = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return {"authorization": f"Basic {both}"} if self.user else {}

    def covers(self, address: Address, node: str, usual_port: int = 0) -> bool:
        """Whether this host's controller may be reached there. `usual_port` 0: an address without a port means any."""
        is_port = (address.port or usual_port) in (self.port or usual_port, 0)
        return is_port and node in self.nodes and self._covers_host(address)

    def _covers_host(self, address: Address) -> bool:
        ip = address.ip
        if ip is None or isinstance(self.match, str):
            return isinstance(self.match, str) and ip is None and f".{address.host}".endswith(f".{self.match}")
        return ip in self.match and (self.match.num_addresses == 1 or not is_special(ip))

    def may_resolve_to(self, host: str, ip: IpAddress) -> bool:
        """Whether a name that it covers may stand for this address."""
        return host == self.match or not is_special(ip)


@dataclass(frozen=True, slots=True)
class Destinations:
    """All that may be called at addresses which callers of the API choose."""

    controllers: tuple[Controllers, ...] = ()
    cms: tuple[CmsEndpoint, ...] = ()
    notify: tuple[AllowedEndpoint, ...] = ()

    def controller_at(self, address: Address, node: str, usual_port: int = 0) -> Controllers | None:
        """The first entry that covers the controller of this host; None: it must not be called."""
        return next((one for one in self.controllers if one.covers(address, node, usual_port)), None)

    def cms_at(self, url: str, tvm_app_id: str = "") -> AllowedEndpoint | None:
        """The entry for a project's CMS, with the token that the project asks for; None: it must not be called.

        Raises BadAddress.
        """
        parsed = parse_url(url)
        covering = [one for one in self.cms if one.covers(parsed)]
        chosen = next((one for one in covering if one.tvm_app_id == tvm_app_id), None)
        if chosen is None and covering and not tvm_app_id:
            return replace(covering[0], token="")  # the project asked for none
        return chosen

    def hook_at(self, url: str) -> AllowedEndpoint | None:
        """The entry for a webhook that gets notices; None: it must not be called. Raises BadAddress."""
        parsed = parse_url(url, may_query=True)
        return next((one for one in self.notify if one.covers(parsed)), None)


NOWHERE: Final = Destinations()
