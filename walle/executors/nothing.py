"""For operations that take no work of ours: a host is only taken into use or out of it."""

from __future__ import annotations

from walle.executors.port import Progress, Seen
from wallepb.v1.host_pb2 import Host


class Nothing:
    """The executor. It is done when it is begun."""

    name: str = "none"

    async def before(self, host: Host) -> str:
        return ""

    async def begin(self, host: Host) -> str:
        return "none"

    async def look(self, host: Host, age_s: float) -> Seen:
        return Seen(Progress.DONE)
