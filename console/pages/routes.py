"""All pages by their addresses."""

from __future__ import annotations

from console.backends.servers import Servers
from console.pages.attributes import AttributePages
from console.pages.disruptions import DisruptionPages
from console.pages.editing import EditPages
from console.pages.events import EventPages
from console.pages.find import FindPages
from console.pages.hosts import HostPages
from console.pages.instances import InstancePages
from console.pages.many import ManyPages
from console.pages.nodes import NodePages
from console.pages.overview import Overview
from console.pages.projects import ProjectPages
from console.pages.services import ServicePages
from console.pages.signing import Signing
from console.pages.snapshots import SnapshotPages
from console.pages.windows import WindowPages
from console.site.visits import Route


def routes(servers: Servers, *, is_open: bool) -> list[Route]:
    """Every address of the console."""
    return [
        *Overview(servers).routes(),
        *FindPages(servers).routes(),
        *ServicePages(servers).routes(),
        *SnapshotPages(servers).routes(),
        *EditPages(servers).routes(),
        *AttributePages(servers).routes(),
        *InstancePages(servers).routes(),
        *NodePages(servers).routes(),
        *ManyPages(servers).routes(),
        *DisruptionPages(servers).routes(),
        *WindowPages(servers).routes(),
        *HostPages(servers).routes(),
        *ProjectPages(servers).routes(),
        *EventPages(servers).routes(),
        *Signing(servers, is_open=is_open).routes(),
    ]
