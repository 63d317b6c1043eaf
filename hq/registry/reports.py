"""Reports of agents: who may report (BeginReporting), what a report changes, and which reports are mere heartbeats.

Follow a heartbeat: `report` finds it equal to what is stored (`_examine`), `Heartbeats.send` packs it, the store orders
it, every replica hears it come back (`Heartbeats.observe`), and the deadline moves (`Deadlines.record_contact`).
"""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

from hq.errors import NotBegun, Stop
from hq.keys import STATUS
from hq.liveness.heartbeats import Heartbeat, heartbeat_of, heartbeat_of_stored
from hq.memory import statuses
from hq.memory.entry import Entry
from hq.registry.reporter_checks import check_turn, has_begun, of_epoch, refusal, subject
from hq.replica import Replica
from hq.validation import check_report, clean_report
from hqpb.v1 import service_pb2
from serving.errors import DeadlineExceeded, NotFound, ServiceError, TooLarge
from store.commit import Conflict
from store.keys import new_word
from store.port import Compare, Write

_CATCH_UP_S = 2.0
_NEARLY_S = 0.25
# Of all revisions of one instance. Expiries, and writes that change spec, secrets and status at once, must still fit.
_MAX_STATUS_BYTES = 768 * 1024


class ReporterGrant(NamedTuple):
    """Answer of BeginReporting. Times in seconds."""

    incarnation: int
    uid: int
    report_interval_s: float
    timeout_s: float


class Reports:
    """The reporting calls. `rng` spreads the next reports of agents."""

    def __init__(self, replica: Replica, rng: random.Random) -> None:
        self._r, self._rng = replica, rng

    @property
    def has_own_times(self) -> bool:
        """Whether some agents report at intervals of their own."""
        return bool(self._r.tracker.agents.others)

    def next_report_in_s(self, instance_id: str = "", revision_id: str = "") -> float:
        """When an agent should report next if nothing changes: up to a tenth sooner than the interval, at random."""
        entry = self._r.cache.get(instance_id) if self.has_own_times else None
        mark = entry.mark(revision_id) if entry is not None else None
        interval_s = self._r.config.report_interval_s
        if mark is not None and mark.liveness is not None:
            interval_s = mark.liveness[0] / 1000
        return interval_s * self._rng.uniform(0.9, 1.0)

    async def begin(self, instance_id: str, revision_id: str, node: str, deadline: float) -> ReporterGrant:
        """Make the caller the reporter of a revision; whoever was it before is fenced.

        Raises:
            NotFound, WrongNode, UnknownRevision: fenced, so it is final.
        """
        r = self._r
        while True:
            entry = await self._agent_entry(instance_id, node, revision_id)
            incarnation = new_word(r.rng)
            draft = self._draft(entry)
            draft.begin(revision_id, incarnation, self._heard_now(), entry.traits.liveness)
            if await self._try_store_status(entry, draft, deadline):
                times = r.tracker.deadlines.times_of(entry.traits.liveness)
                return ReporterGrant(incarnation, entry.traits.uid, times.report_interval_s, times.timeout_s)

    async def report(self, report: service_pb2.ReportStatusRequest, deadline: float, field: str = "") -> None:
        """Take one report: as a heartbeat if it changes nothing, else as a status.

        Raises:
            InvalidRequest: it is malformed.
            NotFound, Stop: the agent must stop; fenced, so it is final.
            TooLarge: with the statuses of the other revisions it is too large.
            StoreUnavailable, OutcomeUnknown: report again.
        """
        try:
            await self._take(report, deadline, field)
        except (Exception, asyncio.CancelledError) as error:
            self._note_refused(report, error, deadline)
            raise

    async def _take(self, report: service_pb2.ReportStatusRequest, deadline: float, field: str) -> None:
        [prepared] = await self._examine_all([report], field)
        if isinstance(prepared, ServiceError):
            raise prepared
        if prepared.heartbeat is not None and (await self._r.heartbeats.send([prepared.heartbeat]))[0]:
            return
        await self._store(prepared.report, prepared.digest, deadline)

    async def report_many(
        self, reports: list[service_pb2.ReportStatusRequest], deadline: float
    ) -> list[ServiceError | None]:
        """Take many reports, each independently; None for each that was taken."""
        try:
            results = await self._take_many(reports, deadline)
        except (Exception, asyncio.CancelledError) as refusing_all:
            for report in reports:
                self._note_refused(report, refusing_all, deadline)
            raise
        for report, error in zip(reports, results, strict=True):
            if error is not None:
                self._note_refused(report, error, deadline)
        return results

    async def _take_many(
        self, reports: list[service_pb2.ReportStatusRequest], deadline: float
    ) -> list[ServiceError | None]:
        prepared = await self._examine_all(reports, "report[{}]")
        heartbeats = [item.heartbeat for item in prepared if isinstance(item, _Prepared) and item.heartbeat is not None]
        current = iter(await self._heartbeats_or_error(heartbeats) if heartbeats else ())
        results: list[ServiceError | None] = [None] * len(reports)
        writes: dict[int, _Prepared] = {}
        for i, item in enumerate(prepared):
            if isinstance(item, ServiceError):
                results[i] = item
            elif item.heartbeat is None or (answer := next(current)) is False:
                writes[i] = item
            elif isinstance(answer, ServiceError):
                results[i] = answer
        stored = (self._store_or_error(item, deadline) for item in writes.values())
        for i, outcome in zip(writes, await asyncio.gather(*stored), strict=True):
            results[i] = outcome
        return results

    async def _store_or_error(self, item: _Prepared, deadline: float) -> ServiceError | None:
        try:
            await self._store(item.report, item.digest, deadline)
        except ServiceError as error:
            return error
        return None

    async def _heartbeats_or_error(self, heartbeats: list[Heartbeat]) -> list[bool | ServiceError]:
        try:
            return list(await self._r.heartbeats.send(heartbeats))
        except ServiceError as error:
            return [error] * len(heartbeats)

    def _note_refused(self, report: service_pb2.ReportStatusRequest, error: BaseException, deadline: float) -> None:
        """Note that HQ refused a report, which is not silence, unless the caller itself was at fault.

        A caller that cancels at its deadline counts as refused: its cancellation may come just before our own timeout.
        """
        if isinstance(error, asyncio.CancelledError):
            if self._r.clock.now() >= deadline - _NEARLY_S:
                self._r.liveness.refusals.report(report, DeadlineExceeded.reason)
        elif not isinstance(error, ServiceError):
            self._r.liveness.refusals.report(report, ServiceError.reason)
        elif error.is_ours:
            self._r.liveness.refusals.report(report, error.reason)

    # --- what a report is -------------------------------------------------------------------------------------------

    async def _examine_all(
        self, reports: list[service_pb2.ReportStatusRequest], field: str
    ) -> list[_Prepared | ServiceError]:
        """Prepare each report, or return why it is refused. An error that would make an agent stop needs a fence."""
        self._r.loading.check()
        examined = [self._examine(report, field, i) for i, report in enumerate(reports)]
        if any(isinstance(item, Stop | NotFound) for item in examined):
            await self._r.catch_up.proven()
            for i, item in enumerate(examined):
                if isinstance(item, Stop | NotFound):
                    examined[i] = self._examine(reports[i], field, i)
        return examined

    def _examine(self, report: service_pb2.ReportStatusRequest, path: str, index: int) -> _Prepared | ServiceError:
        digest = statuses.digest(report.revision)
        known = self._r.cache.get(report.instance_id)
        if (
            known is not None
            and (heartbeat := heartbeat_of(known, report, digest)) is not None
            and self._readable(known)
        ):
            return _Prepared(report, digest, heartbeat)
        field = path.format(index)
        try:
            check_report(report, field)
            entry = self._admitted_entry(report, digest)
            clean_report(report.revision)
            if report.revision.spec_version == entry.version:
                # Not a heartbeat, and its agent has acted on the current spec: its containers must be in that spec.
                wanted = next((r for r in entry.spec().revision if r.id == report.revision.id), None)
                check_report(report, field, wanted)
        except ServiceError as error:
            return error
        return _Prepared(report, digest, None)

    def _readable(self, entry: Entry) -> bool:
        """Whether the status record in the store can be decoded. If not, the report is written again, as a status."""
        return self._r.cache.quarantine.get(STATUS, entry.traits.id) is None

    def _admitted_entry(self, report: service_pb2.ReportStatusRequest, digest: int) -> Entry:
        """The instance that is reported. Raises what makes the reporter stop, with the epoch in which that holds."""
        try:
            return self._admitted_by(self._r.cache.get(report.instance_id), report, digest)
        except (Stop, NotFound) as error:
            raise self._of_agent(error, report.node, report.instance_id) from None

    def _admitted_by(self, entry: Entry | None, report: service_pb2.ReportStatusRequest, digest: int) -> Entry:
        error = refusal(entry, report.instance_id, report.node, report.revision.id, report.uid)
        if error is not None or entry is None:
            raise error or NotFound(report.instance_id)
        mark = entry.mark(report.revision.id)
        is_past = entry.status_version < self._r.cache.epoch_at
        if mark is None or not has_begun(report, mark, is_past=is_past):
            raise NotBegun(subject(report), "reporting of this revision has not begun: call BeginReporting first")
        check_turn(report, mark, digest)
        if digest == mark.digest and mark.liveness != entry.traits.liveness:
            # Demanded only on heartbeats, which are spread over the old interval; a report with news is taken first.
            raise NotBegun(subject(report), "its liveness settings have changed: call BeginReporting again")
        return entry

    async def _agent_entry(self, instance_id: str, node: str, revision_id: str) -> Entry:
        """The instance that an agent asks for; an error that would make it stop is given only after a fence."""
        r = self._r
        r.loading.check()
        entry = r.cache.get(instance_id)
        if refusal(entry, instance_id, node, revision_id) is not None:
            await r.catch_up.proven()
            entry = r.cache.get(instance_id)
        error = refusal(entry, instance_id, node, revision_id)
        if error is not None or entry is None:
            raise self._of_agent(error or NotFound(instance_id), node, instance_id)
        return entry

    def _of_agent(self, error: ServiceError, node: str, instance_id: str) -> ServiceError:
        """The refusal with its epoch. Notes instances unknown to the store: the agent may know another history."""
        if isinstance(error, NotFound):
            self._r.trust.strangers.record_report(node, instance_id, self._r.clock.now())
        return of_epoch(error, self._r.cache.epoch)

    # --- storing it as a status -------------------------------------------------------------------------------------

    async def _store(self, report: service_pb2.ReportStatusRequest, digest: int, deadline: float) -> None:
        while True:
            try:
                entry = self._admitted_entry(report, digest)
            except (Stop, NotFound):
                await self._r.catch_up.proven()
                entry = self._admitted_entry(report, digest)
            if (heartbeat := heartbeat_of_stored(entry, report, digest)) is not None and self._readable(entry):
                if await self._heard_again(heartbeat, entry, deadline):
                    return
                continue
            draft = self._draft(entry)
            before_bytes = draft.size_bytes
            draft.report(report.revision, self._heard_now(), digest)
            if draft.size_bytes > max(_MAX_STATUS_BYTES, before_bytes):
                raise TooLarge(
                    f"the statuses of all revisions of {entry.traits.id} would be {draft.size_bytes} bytes in total, "
                    f"at most {_MAX_STATUS_BYTES} are allowed: report less, or remove revisions"
                )
            if await self._try_store_status(entry, draft, deadline):
                return

    async def _heard_again(self, heartbeat: Heartbeat, entry: Entry, deadline: float) -> bool:
        """Send a heartbeat; False: the status changed meanwhile."""
        if self._r.clock.now() >= deadline:
            raise DeadlineExceeded(f"conflict: {entry.traits.id} kept changing; nothing was stored, retry")
        return (await self._r.heartbeats.send([heartbeat]))[0]

    async def _try_store_status(self, entry: Entry, draft: statuses.StatusDraft, deadline: float) -> bool:
        """Write a status unless it changed meanwhile: then catch up and return False."""
        r, instance_id = self._r, entry.traits.id
        write_id = new_word(r.rng)
        spec_key, status_key = r.key_names.spec(instance_id), r.key_names.status(instance_id)
        _, status_at = r.cache.stored_versions(instance_id)
        # The spec may change under a report, but may not be deleted or recreated.
        when = (Compare(spec_key, "created", entry.spec_created), Compare(status_key, "modified", status_at))
        value = draft.record(write_id, r.clock.wall_ms()).SerializeToString()
        try:
            version = await r.committer.commit(instance_id, Write(when, ((status_key, value),)), write_id, deadline)
        except Conflict as conflict:
            if r.clock.now() >= deadline:
                raise DeadlineExceeded(f"conflict: {instance_id} kept changing; nothing was stored, retry") from None
            if conflict.modified[spec_key] == 0:
                await r.catch_up.proven()
            await r.catch_up.until(max(conflict.modified.values()), _CATCH_UP_S)
            r.loading.check()
            return False
        await r.catch_up.wait_for_version(version)
        return True

    def _draft(self, entry: Entry) -> statuses.StatusDraft:
        return statuses.status_draft_of(entry, self._r.cache.epoch_at)

    def _heard_now(self) -> statuses.ReportReceipt:
        return statuses.ReportReceipt(self._r.config.replica, self._r.clock.wall_ms())


class _Prepared(NamedTuple):
    """A report that may be taken: as a heartbeat if it changes nothing."""

    report: service_pb2.ReportStatusRequest
    digest: int
    heartbeat: Heartbeat | None
