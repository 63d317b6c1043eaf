"""BeginReportings: a node that is powered up becomes the reporter of all its revisions in one call."""

from __future__ import annotations

import asyncio

from hq.errors import Stop
from hq.registry.reporter_checks import refusal
from hq.registry.reports import ReporterGrant, Reports
from hq.validation import check_begin
from hqpb.v1 import service_pb2
from serving.errors import NotFound, ServiceError
from store.keys import new_word

Outcomes = dict[str, ReporterGrant | ServiceError]  # by revision


class NodeReports(Reports):
    """The reporting calls, including those for a whole node."""

    async def begin_many(
        self, asked: list[service_pb2.BeginReportingRequest], deadline: float
    ) -> list[ReporterGrant | ServiceError]:
        """Begin each revision by itself. Those of one instance are one write; all share fences and transactions."""
        found: dict[int, ReporterGrant | ServiceError] = {}
        groups: dict[tuple[str, str], dict[str, int]] = {}
        for i, item in enumerate(asked):
            group = groups.setdefault((item.instance_id, item.node), {})
            try:
                check_begin(item, f"begin[{i}]", group.get(item.revision_id))
                group[item.revision_id] = i
            except ServiceError as error:
                found[i] = error
        work = [self._begin_group(*where, [*group], deadline) for where, group in groups.items() if group]
        of_each = [group for group in groups.values() if group]
        for group, outcomes in zip(of_each, await asyncio.gather(*work), strict=True):
            found.update((i, outcomes[revision_id]) for revision_id, i in group.items())
        return [found[i] for i in range(len(asked))]

    async def _begin_group(self, instance_id: str, node: str, revision_ids: list[str], deadline: float) -> Outcomes:
        try:
            while True:
                outcomes = await self._begin_once(instance_id, node, revision_ids, deadline)
                if outcomes is not None:
                    return outcomes
        except ServiceError as error:
            return dict.fromkeys(revision_ids, error)

    async def _begin_once(
        self, instance_id: str, node: str, revision_ids: list[str], deadline: float
    ) -> Outcomes | None:
        """Begin revisions of one instance; None: it changed meanwhile."""
        outcomes: Outcomes = {}
        for revision_id in revision_ids:
            try:
                await self._agent_entry(instance_id, node, revision_id)
            except (Stop, NotFound) as error:
                outcomes[revision_id] = error
        begun = [revision_id for revision_id in revision_ids if revision_id not in outcomes]
        if not begun:
            return outcomes
        entry = self._r.cache.get(instance_id)
        if entry is None or any(refusal(entry, instance_id, node, revision_id) for revision_id in begun):
            return None
        draft, liveness = self._draft(entry), entry.traits.liveness
        times = self._r.tracker.deadlines.times_of(liveness)
        for revision_id in begun:
            incarnation = new_word(self._r.rng)
            draft.begin(revision_id, incarnation, self._heard_now(), liveness)
            outcomes[revision_id] = ReporterGrant(
                incarnation, entry.traits.uid, times.report_interval_s, times.timeout_s
            )
        return outcomes if await self._try_store_status(entry, draft, deadline) else None
