"""HQ, or a federation gateway over several, and the locations behind it for what belongs to each of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from console.backends.asking import CLUSTER, Trouble, metadata, try_call
from console.backends.patience import PART_S, Patience
from console.backends.remote import Remote
from hqclient.client import Client
from hqclient.credentials import Credentials
from hqclient.retry import Safety
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

T = TypeVar("T")
A = TypeVar("A", "pb.CountInstancesResponse | Trouble", "pb.FindInstancesResponse | Trouble")
NAME: Final = "HQ"
MOST_MOVES: Final = 500  # expiries and recoveries of one location, where no other number is named
_ONLY: Final = "HQ"  # the name of the one location, without a gateway


class RegistryClient:
    """Reads and orders. Each read answers, or says why not."""

    def __init__(
        self,
        addresses: Sequence[str],
        locations: Mapping[str, Sequence[str]],
        credentials: Credentials | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`locations`: replicas by the name of the cluster, for what a gateway does not answer itself."""
        self._client = _client(addresses, credentials)
        self._locations = {name: _client(given, credentials) for name, given in locations.items()}
        self._remotes = {
            name: Remote(name, given, credentials) for name, given in (locations or {_ONLY: addresses}).items()
        }
        self.has_locations = bool(locations)
        self._now = now
        self._patience = Patience(NAME)
        self._patiences = {name: Patience(name, PART_S) for name in self._locations or (_ONLY,)}
        self._silent: dict[str, float] = {}  # locations that a gateway does not reach, and since when

    async def close(self) -> None:
        """End every connection."""
        clients = [self._client, *self._locations.values()]
        await asyncio.gather(*(one.close() for one in clients), *(one.close() for one in self._remotes.values()))

    async def counts(
        self, by: pb.CountGroup, where: pb.InstanceFilter | None = None
    ) -> pb.CountInstancesResponse | Trouble:
        """How many instances there are, and how many are ready."""
        return self._with_staleness(await self._patience.run_call(lambda: self._client.count(where, by=by)))

    async def counts_by_location(
        self, by: pb.CountGroup, where: pb.InstanceFilter
    ) -> tuple[pb.CountInstancesResponse | Trouble, dict[str, Sequence[pb.InstanceCount]]]:
        """The counts of all locations together, and those of each that answers."""
        whole = await self.counts(by, where)
        sources = () if isinstance(whole, Trouble) else whole.sources
        names = [one.cluster for one in sources if one.replica or not one.error]
        if isinstance(whole, Trouble) or len(names) == 1:
            return whole, {name: whole.groups for name in names if not isinstance(whole, Trouble)}
        found = await asyncio.gather(*(self.counts(by, _in_cluster(where, name)) for name in names))
        parts = zip(names, found, strict=True)
        return whole, {name: one.groups for name, one in parts if not isinstance(one, Trouble)}

    async def page(self, where: pb.InstanceFilter, size: int, token: str = "") -> pb.FindInstancesResponse | Trouble:
        """One page of instances, in order of their ids."""
        request = pb.FindInstancesRequest(filter=where, page_size=size, page_token=token)
        return self._with_staleness(
            await self._patience.run_call(
                lambda: self._client.call(lambda hq: hq.instances.FindInstances, request, safety=Safety.REPEATABLE)
            )
        )

    async def unready(
        self, services: Sequence[str], size: int
    ) -> tuple[pb.CountInstancesResponse | Trouble, pb.FindInstancesResponse | Trouble]:
        """Instances of these services that are not ready: all of them counted by reason, and some of them."""
        where = pb.InstanceFilter(service_id=services, readiness=pb.READINESS_FILTER_NOT_READY)
        return await asyncio.gather(self.counts(pb.COUNT_GROUP_REASON, where), self.page(where, size))

    async def explain(self, cluster: str, instance_id: str) -> pb.ExplainInstanceResponse | Trouble:
        """Why an instance is ready or not."""
        with _cluster_context(cluster):
            return await self._patience.run_call(lambda: self._client.explain(instance_id))

    async def each(self, ask: Callable[[Client], Awaitable[T]], cluster: str = "") -> list[tuple[str, T | Trouble]]:
        """Return the answer of each location, by name; of one cluster only, where one is named."""
        asked = self._clients_for(cluster)
        found = await asyncio.gather(
            *(self._patience_of(name).run_call(partial(ask, client)) for name, client in asked.items())
        )
        return list(zip(asked, found, strict=True))

    async def guards(self) -> list[tuple[str, admin_pb2.GetGuardResponse | Trouble]]:
        """Return the state of each location's guard."""
        return await self.each(lambda client: client.admin.get_guard())

    async def suspensions(self) -> list[tuple[str, admin_pb2.ListSuspensionsResponse | Trouble]]:
        """The nodes under planned work."""
        return await self.each(lambda client: client.admin.list_suspensions())

    async def transitions(
        self, instance_id: str = "", cluster: str = "", most: int = MOST_MOVES
    ) -> list[tuple[str, admin_pb2.ListTransitionsResponse | Trouble]]:
        """Recent expiries and recoveries of each location, newest first."""
        return await self.each(lambda c: c.admin.list_transitions(instance_id, page_size=most), cluster)

    async def may_operate(self, node: str = "", cluster: str = "") -> bool:
        """Whether this person is an operator there: of a node, else of everything."""
        asked = [one for name, one in self._remotes.items() if cluster in ("", name) or not self.has_locations]
        found = await asyncio.gather(*(remote.roles(node=node) for remote in asked))
        return any("operator" in roles for roles in found)

    async def order(self, cluster: str, send: Callable[[Client], Awaitable[Any]]) -> Trouble | None:
        """An order to one location; None: it was carried out."""
        asked = self._clients_for(cluster)
        if cluster not in asked:
            return Trouble(NAME, "absent", f"there is no location {cluster!r}")
        answer = await try_call(cluster, send(asked[cluster]))
        return answer if isinstance(answer, Trouble) else None

    def _patience_of(self, name: str) -> Patience:
        return self._patiences.get(name) or self._patiences[_ONLY]  # without a gateway: the name is the page's

    def _with_staleness(self, answer: A) -> A:
        """Set the staleness of silent locations to the time since we first saw that: a gateway does not say it."""
        for source in () if isinstance(answer, Trouble) else answer.sources:
            if source.error and not source.replica:
                since = self._silent.setdefault(source.cluster, self._now())
                source.staleness.FromMilliseconds(int(1_000 * (self._now() - since)))
            else:
                self._silent.pop(source.cluster, None)
        return answer

    def _clients_for(self, cluster: str) -> dict[str, Client]:
        if not self._locations:
            return {cluster or _ONLY: self._client}
        return {n: c for n, c in self._locations.items() if cluster in ("", n)}


def _in_cluster(where: pb.InstanceFilter, name: str) -> pb.InstanceFilter:
    made = pb.InstanceFilter(cluster=[name])
    made.MergeFrom(where)
    return made


def _client(addresses: Sequence[str], credentials: Credentials | None) -> Client:
    return Client(addresses, timeout_s=4.0, credentials=credentials, metadata=metadata)


@contextmanager
def _cluster_context(cluster: str) -> Iterator[None]:
    was = CLUSTER.set(cluster)
    try:
        yield
    finally:
        CLUSTER.reset(was)
