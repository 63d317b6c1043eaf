"""Destinations of tests: counterparts are at ports that are known too late to be listed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from walle.outgoing.destinations import Address, AllowedEndpoint, CmsEndpoint, Controllers, Destinations, parse_url


@dataclass(frozen=True, slots=True)
class Anywhere(Destinations):
    """Everything may be called. `token`: sent to each CMS."""

    token: str = ""

    def cms_at(self, url: str, tvm_app_id: str = "") -> CmsEndpoint:
        return CmsEndpoint(parse_url(url), self.token, tvm_app_id=tvm_app_id)

    def hook_at(self, url: str) -> AllowedEndpoint:
        return AllowedEndpoint(parse_url(url, may_query=True))

    def controller_at(self, address: Address, node: str, usual_port: int = 0) -> Controllers:
        ip = address.ip
        return Controllers(address.host if ip is None else ipaddress.ip_network(ip))


ANYWHERE = Anywhere()


def controller_entry(url: str) -> dict[str, object]:
    """The entry of `redfish` in a configuration file for the controller at this URL."""
    address = parse_url(url).address
    return {"match": address.host, "port": address.port}
