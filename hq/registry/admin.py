"""The operators' API: orders and queries."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from itertools import islice

from hq.errors import EpochChanged
from hq.liveness.orders import within
from hq.registry.guard_state import guard_state
from hq.replica import Replica
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import admin_pb2, service_pb2
from serving.errors import NotFound
from store.etcd_versions import advice
from store.port import Write

log = logging.getLogger(__name__)


class Admin:
    """The operators' calls. Orders are stored, with who gave them and why, and every replica obeys them."""

    def __init__(self, replica: Replica) -> None:
        self._r = replica

    def guard(self) -> service_pb2.GuardState:
        """The state of this replica's guard."""
        self._r.loading.check()
        return guard_state(self._r.liveness, self._r.cache, self._r.clock)

    async def order_guard(
        self, kind: int, duration_ms: int, by: str, reason: str, deadline: float
    ) -> service_pb2.GuardState:
        """Release (1) or force (2) the guard for a while; 0 ms: for the liveness timeout."""
        r = self._r
        duration_ms = duration_ms or round(r.config.liveness_timeout_s * 1000)
        order = storage_pb2.GuardOrder(
            kind=kind, by=by, reason=reason, since_unix_ms=r.clock.wall_ms(), duration_ms=duration_ms
        )
        await self._put_record("guard", r.key_names.guard, order.SerializeToString(), deadline)
        done = "released" if kind == service_pb2.GUARD_OVERRIDE_KIND_RELEASE else "forced to hold every expiry"
        log.warning("guard: %s by %r for %g s: %s", done, by, duration_ms / 1000, reason)
        return self.guard()

    def epoch(self) -> admin_pb2.EpochState:
        """Whether the store's contents are trusted, and why."""
        r = self._r
        r.loading.check()
        standing, confirmed = r.trust.standing(), r.liveness.orders.confirmed
        state = admin_pb2.EpochState(
            epoch=r.cache.epoch,
            trust=standing.trust,
            doubt=standing.doubt(),
            instances=standing.now.instances,
            ready=standing.now.ready,
            instances_before=standing.before.instances,
            ready_before=standing.before.ready,
            unknown_reported=r.trust.unknown_reported(),
        )
        if standing.confirmed:
            state.by, state.reason = confirmed.by, confirmed.reason
            state.time.FromMilliseconds(within(confirmed.since_unix_ms))
        return state

    async def confirm_epoch(self, epoch: str, by: str, reason: str, deadline: float) -> admin_pb2.EpochState:
        """Confirm that this epoch's contents are complete. Raises EpochChanged: that epoch is over."""
        self._r.loading.check()
        if epoch != self._r.cache.epoch:
            raise EpochChanged(epoch, self._r.cache.epoch, "nothing was confirmed; `hqctl epoch status` shows it")
        await self._r.trust.confirm(by, reason, deadline)
        return self.epoch()

    async def suspend(self, node: str, duration_ms: int, by: str, reason: str, deadline: float) -> admin_pb2.Suspension:
        """Suspend liveness on a node for planned work: none of its revisions expires until that ends."""
        r = self._r
        order = storage_pb2.NodeSuspension(
            by=by, reason=reason, since_unix_ms=r.clock.wall_ms(), duration_ms=duration_ms
        )
        await self._put_record(f"suspend {node}", r.key_names.suspension(node), order.SerializeToString(), deadline)
        log.warning("liveness of node %s suspended by %r for %d ms: %s", node, by, duration_ms, reason)
        return _suspension(node, by, reason, order.since_unix_ms, order.since_unix_ms + duration_ms)

    async def resume(self, node: str, deadline: float) -> None:
        """End planned work early. Raises NotFound."""
        self._r.loading.check()
        if self._r.liveness.orders.suspension(node) is None:
            await self._r.catch_up.proven()
        if self._r.liveness.orders.suspension(node) is None:
            raise NotFound(f"node {node} is not suspended")
        await self._commit(f"suspend {node}", Write((), deletes=(self._r.key_names.suspension(node),)), deadline)
        log.warning("liveness of node %s resumed", node)

    def suspensions(self) -> list[admin_pb2.Suspension]:
        """Ordered by node."""
        self._r.loading.check()
        found = self._r.liveness.orders.suspensions()
        return [_suspension(s.node, s.by, s.reason, s.since_ms, s.until_ms) for s in found]

    def transitions(
        self, instance_id: str, at_most: int, is_shown: Callable[[str, str], bool] = lambda _service, _node: True
    ) -> list[admin_pb2.Transition]:
        """Newest first; those for which `is_shown(service, node)` is true. A deleted instance has the service ""."""
        self._r.loading.check()
        answers = []
        all_of_it = self._r.tracker.transitions(instance_id, sys.maxsize)
        for t in islice((t for t in all_of_it if is_shown(self._service(t.key.instance_id), t.node)), at_most or 100):
            transition = admin_pb2.Transition(
                instance_id=t.key.instance_id,
                revision_id=t.key.revision_id,
                node_name=t.node,
                ready=t.ready,
                version=t.version,
                condition=t.condition,
            )
            transition.time.FromMilliseconds(t.wall_ms)
            answers.append(transition)
        return answers

    def _service(self, instance_id: str) -> str:
        entry = self._r.cache.get(instance_id)
        return entry.traits.service if entry else ""

    def quarantine(self) -> list[admin_pb2.QuarantinedRecord]:
        """Ordered by key."""
        self._r.loading.check()
        return [
            admin_pb2.QuarantinedRecord(
                key=f"{q.kind}/{q.rest}",
                version=q.version,
                error=q.error,
                served_from_older=q.served_from_older,
            )
            for q in self._r.cache.quarantine.all()
        ]

    def replicas(self) -> list[admin_pb2.ReplicaInfo]:
        """The replicas that this one has heard from, ordered by name."""
        now, me = self._r.clock.now(), self._r.config.replica
        infos = []
        for name, seen in sorted({**self._r.events.peers, me: now}.items()):
            info = admin_pb2.ReplicaInfo(replica=name, self=name == me)
            info.silent_for.FromMilliseconds(round((now - seen) * 1000))
            infos.append(info)
        return infos

    def proof(self) -> admin_pb2.MemoryProof:
        """How this replica's memory proves itself against the store."""
        proof, now = self._r.proof, self._r.clock.now()
        answer = admin_pb2.MemoryProof(mended=proof.mended)
        moments = {
            "counted_ago": proof.counted_at,
            "compared_ago": proof.compared_at,
            "foreign_compaction_ago": proof.foreign_compaction_at,
        }
        for name, at in moments.items():
            if at is not None:
                getattr(answer, name).FromMilliseconds(round((now - at) * 1000))
        return answer

    def room(self) -> tuple[int, int]:
        """How much of the store live records use, and how much they may use, in bytes."""
        return self._r.cache.stored_bytes, self._r.config.max_store_bytes

    async def members(self) -> list[admin_pb2.StoreMember]:
        """The store's members, each as it reports itself."""
        return [
            admin_pb2.StoreMember(
                endpoint=m.endpoint,
                version=m.version,
                leader=m.leader,
                db_size_bytes=m.db_size_bytes,
                db_size_in_use_bytes=m.db_in_use_bytes,
                quota_bytes=m.quota_bytes,
                full=m.full,
                error=m.error,
                advice=advice(m.version),
                learner=m.learner,
            )
            for m in await self._r.store.members()
        ]

    async def _put_record(self, subject: str, key: bytes, value: bytes, deadline: float) -> None:
        await self._commit(subject, Write((), ((key, value),)), deadline)

    async def _commit(self, subject: str, write: Write, deadline: float) -> None:
        self._r.loading.check()
        version = await self._r.committer.commit(f"ops/{subject}", write, 0, deadline)
        await self._r.catch_up.wait_for_version(version)


def _suspension(node: str, by: str, reason: str, since_ms: int, until_ms: int) -> admin_pb2.Suspension:
    suspension = admin_pb2.Suspension(node_name=node, by=by, reason=reason)
    suspension.since.FromMilliseconds(since_ms)
    suspension.until.FromMilliseconds(until_ms)
    return suspension
