"""Reading what an installation holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from descriptions.held import HeldInstance, held_instance
from hqclient.client import STRONG, Client
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from nannyctl.plans.plan import PlanIntent

IDS_PER_REQUEST = 200
SECRET_READS = 32  # at the same time
SECRET_TRIES = 10
BEHIND_S = 0.1


class InstanceReader:
    """Reads instances of one installation, always with everything acknowledged before (STRONG).

    Attributes:
        missing: locations that a gateway had no answer from, so their instances are missing.
    """

    def __init__(self, client: Client) -> None:
        self.missing: set[str] = set()
        self._client = client
        self._secret_reads = asyncio.Semaphore(SECRET_READS)

    async def read_service(self, service: str, also: Iterable[str] = ()) -> dict[str, HeldInstance]:
        """Instances by id: all of a service, and those of other services that have an id in `also`."""
        found = await self._find(pb.InstanceFilter(service_id=[service]))
        missing = [instance_id for instance_id in also if instance_id not in found]
        return {**found, **await self.read_instances(missing)}

    async def read_instances(self, ids: Sequence[str]) -> dict[str, HeldInstance]:
        """Read these instances; return those that exist, by id."""
        found: dict[str, HeldInstance] = {}
        for some in _portions(ids):
            found |= await self._find(pb.InstanceFilter(instance_id=some))
        return found

    async def with_secrets(self, holdings: dict[str, HeldInstance], intent: PlanIntent) -> dict[str, HeldInstance]:
        """`holdings`, with secret descriptors where the intent needs them."""
        wanted = [one for one in holdings.values() if intent.needs_secrets(one)]
        read = await asyncio.gather(*(self._with_secrets(one) for one in wanted))
        return {**holdings, **{one.id: one for one in read if one is not None}}

    async def _find(self, where: pb.InstanceFilter) -> dict[str, HeldInstance]:
        found: dict[str, HeldInstance] = {}
        async for page in self._client.find(where, read=STRONG):
            epoch = page.sources[0].epoch if page.sources else ""
            self.missing |= {source.cluster for source in page.sources if source.error and not source.replica}
            found |= {instance.meta.id: held_instance(instance, epoch) for instance in page.instances}
        return found

    async def _with_secrets(self, one: HeldInstance) -> HeldInstance | None:
        """With descriptors; None: it is gone, or changes faster than it can be read; a write will find that out."""
        async with self._secret_reads:
            for _ in range(SECRET_TRIES):
                try:
                    answer = await self._client.get_revision(one.id)
                except HqApiError as error:
                    if error.code.name != "NOT_FOUND":
                        raise
                    return None
                if answer.version == one.instance.meta.version:
                    return one.with_secrets(answer.revision)
                if answer.version > one.instance.meta.version:
                    one = (await self.read_instances([one.id])).get(one.id, one)
                else:
                    await asyncio.sleep(BEHIND_S)  # that replica is behind the one we found the instance at
            return None


def _portions(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), IDS_PER_REQUEST):
        yield ids[start : start + IDS_PER_REQUEST]
