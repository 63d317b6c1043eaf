"""All pages by their addresses."""

from __future__ import annotations

from console.backends.servers import Servers
from console.pages.disruptions import Disruptions
from console.pages.events import Events
from console.pages.hosts import Hosts
from console.pages.instances import Instances
from console.pages.nodes import Nodes
from console.pages.overview import Overview
from console.pages.projects import Projects
from console.pages.services import Services
from console.pages.signing import Signing
from console.pages.snapshots import Snapshots
from console.site.visits import Route


def routes(servers: Servers, *, is_open: bool) -> list[Route]:
    """Every address of the console."""
    return [
        *Overview(servers).routes(),
        *Services(servers).routes(),
        *Snapshots(servers).routes(),
        *Instances(servers).routes(),
        *Nodes(servers).routes(),
        *Disruptions(servers).routes(),
        *Hosts(servers).routes(),
        *Projects(servers).routes(),
        *Events(servers).routes(),
        *Signing(servers, is_open=is_open).routes(),
    ]
