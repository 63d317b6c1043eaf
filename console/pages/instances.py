"""One instance: why it is ready or not, and its whole story on a time line."""

from __future__ import annotations

import asyncio

from console.backends.asking import Trouble, good, status_of, troubles
from console.backends.servers import Servers
from console.pages.hosts import host_of
from console.pages.timeline import past_of
from console.site.visits import Route, TemplatePage, Visit
from console.views.instances import last_output, moves_of, revisions, row, story
from console.views.locations import answers_except_silent, locations
from hqpb.v1 import service_pb2 as pb


class InstancePages:
    """`/instances/{cluster}/{instance}`."""

    def __init__(self, servers: Servers) -> None:
        self._registry, self._walle, self._recorder = servers.registry, servers.walle, servers.recorder

    def routes(self) -> list[Route]:
        """Its address."""
        return [Route("GET", "/instances/{cluster}/{instance}", self.one)]

    async def one(self, visit: Visit, cluster: str, instance: str) -> TemplatePage:
        """Show what `hqctl why` tells."""
        where = pb.InstanceFilter(instance_id=[instance], cluster=[cluster])
        found, why, moved = await asyncio.gather(
            self._registry.page(where, 1),
            self._registry.explain(cluster, instance),
            self._registry.transitions(instance, cluster),
        )
        held = good(found, pb.FindInstancesResponse()).instances
        one = held[0] if held else None
        node = "" if isinstance(why, Trouble) else why.node_name
        host, past = await asyncio.gather(
            host_of(self._walle, node),
            past_of(
                self._recorder,
                visit,
                one.meta.service_id if one is not None else "",
                ("instances", cluster, instance),
                instance=instance,
                cluster=cluster,
            ),
        )
        shown = {
            "id": instance,
            "host": None if isinstance(host, Trouble) else host,
            "cluster": cluster,
            "row": row(one, visit.now_s) if one is not None else None,
            "one": one,
            "why": None if isinstance(why, Trouble) else why,
            "revisions": [] if isinstance(why, Trouble) else revisions(why, visit.now_s),
            "story": []
            if isinstance(why, Trouble)
            else story(one, why, [move for _, move in moves_of(moved)], visit.now_s),
            "output": last_output(one),
            "past": past,
            "locations": locations(found),
            "troubles": troubles(found, why, host, *answers_except_silent(moved, locations(found))),
        }
        return TemplatePage("instance.html", instance, shown, status_of(held or (past and past.is_known), why))
