"""Lists of what controllers hold, in the columns that commands print: windows."""

from __future__ import annotations

from cmspb.v1 import cms_pb2 as pb
from console.backends.asking import good, missing, troubles
from console.backends.servers import Servers
from console.site.visits import Route, TemplatePage, Visit
from hqkinds.cms import WINDOWS


class KindPages:
    """A page for each kind that needs no more than its table."""

    def __init__(self, servers: Servers) -> None:
        self._cms = servers.cms

    def routes(self) -> list[Route]:
        """Routes of the lists of kinds."""
        return [Route("GET", "/windows", self.windows)]

    async def windows(self, visit: Visit) -> TemplatePage:
        """When planned work and roll-outs may begin, and when what is closed opens."""
        if self._cms is None:
            return TemplatePage("missing.html", "Windows", {"troubles": [missing("CMS", "--cms")]})
        listed = await self._cms.windows()
        shown = {
            "heads": WINDOWS.heads(wide=True),
            "rows": WINDOWS.rows(WINDOWS.items(good(listed, pb.ListWindowsResponse())), wide=True),
            "none": ("No windows: work may begin at any time.", "Set some: hqctl windows apply -f FILE"),
            "troubles": troubles(listed),
        }
        return TemplatePage("list.html", "Windows", shown)
