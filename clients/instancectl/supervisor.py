"""The supervisor: brings the actual state to the wanted one, and reports its progress.

Every event (a new wanted state, a finished preparation, a process exit) wakes one loop, which plans again.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from hqpb.v1.instance_pb2 import RevisionStatus
from instancectl.background import Chores
from instancectl.containers.running import RunningContainers
from instancectl.containers.workshop import Workshop
from instancectl.content.prepare import Preparer
from instancectl.housekeeping import Housekeeping
from instancectl.installs import Installs
from instancectl.reports import conditions
from instancectl.reports.sink import StatusSink
from instancectl.reports.subject import SubjectId
from instancectl.settings import Manner
from instancectl.takeover import end_all, known_containers, revision_to_keep, spec_to_adopt_by, take_over
from instancectl.wanted import desired as copies
from instancectl.wanted.desired import Desired, RevisionContentKey
from instancectl.wanted.plan import (
    Action,
    Actual,
    GiveUpRevision,
    PrepareRevision,
    RemoveRevision,
    RunRevision,
    StopRevision,
    Wanted,
    plan,
)
from instancectl.wanted.source import DesiredSource, DesiredUpdate, Gone, Wishes

log = logging.getLogger(__name__)
LAST_WORDS_S = 3.0


class Supervisor:
    """Supervises the instance of one directory.

    Attributes:
        desired: what is wanted; None: not known yet.
        running: what runs, or is being stopped.
        statuses: what was last reported of each revision.
        fenced: another reporter took over, as HQ puts it; empty: nobody did.
    """

    def __init__(
        self, source: DesiredSource, last_good: Desired | None, workshop: Workshop, preparer: Preparer, manner: Manner
    ) -> None:
        self.desired: Desired | None = None
        self.running: RunningContainers | None = None
        self.statuses: dict[str, RevisionStatus] = {}
        self.fenced = ""
        self._shop = workshop
        self._manner = manner
        self._last_good = last_good
        self._wake = asyncio.Event()
        self.wishes = Wishes(source, last_good, self._wake.set)
        self.installs = Installs(preparer, workshop.state, workshop.clock, self._wake.set)
        self._house = Housekeeping(workshop.layout, workshop.state)
        self._chores = Chores(self._wake.set)
        self._ends = False
        self._has_adopted = False

    def end(self) -> None:
        """Stop what runs and return from `run`."""
        log.info("stopping: ending all containers, then reporting that to HQ")
        self._ends = True
        self._wake.set()

    def on_reporting_stopped(self, subject: SubjectId, reason: str, message: str) -> None:
        """HQ no longer accepts reports of a revision."""
        log.warning("HQ refuses reports of %s (%s): %s", subject, reason, message)
        if reason == "FENCED":
            self.fenced = message
            self._wake.set()
        else:
            self.wishes.look_again()

    async def run(self, sink: StatusSink) -> None:
        """Supervise until `end`, or until the instance is gone and has been freed.

        Raises:
            WrongDirectory: the directory belongs to another instance.
        """
        background = [asyncio.create_task(self.wishes.follow()), asyncio.create_task(sink.run())]
        for task in background:
            task.add_done_callback(lambda _: self._wake.set())
        try:
            await self._adopt_known(sink)
            while not (self._ends or self.wishes.gone):
                await self._wake.wait()
                self._wake.clear()
                _raise_first(background)
                await self._turn(sink)
            await self._leave(sink)
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)
            await self._detach()

    async def once(self, sink: StatusSink) -> bool:
        """Prepare and remove as needed, report once; return whether every wanted revision is installed."""
        await self.wishes.hear_once()
        await self._turn(sink)
        await self.installs.wait()
        await self._turn(sink)
        while self._chores.is_busy:
            await self._chores.wait()
            await self._turn(sink)
        await sink.flush(LAST_WORDS_S)
        await self.installs.close()
        return self.desired is not None and set(self.desired.held_keys) <= self.installs.installed

    # --- what is wanted ---------------------------------------------------------------------------------------------

    async def _take(self, asked: DesiredUpdate, sink: StatusSink) -> None:
        """Make an update the wanted state."""
        new, old = asked.desired, self.desired
        self._house.claim(new)
        if asked.afresh:
            log.warning("instance %s was recreated (new uid): nothing of the previous one is kept", new.instance_id)
            await self._clear(old or new)
            self._house.claim(new)
        elif old is None and self._manner.starts:
            await self._adopt(new, sink)
        if new != old:
            self._keep(new)
        if old is None:
            await self._house.tidy(self.installs.present | set(new.held_keys))
        self.desired = new
        for revision_id in set(self.statuses) - {key.id for key in new.by_key}:
            del self.statuses[revision_id]
            sink.forget(SubjectId(new.instance_id, new.node, revision_id))
        if new != old:  # a refusal triggers a re-read: resuming without a change would repeat it at once, for ever
            sink.resume()

    def _keep(self, new: Desired) -> None:
        """Keep it as the last good copy. A full disk must not end us: nobody would report what runs."""
        path = self._shop.layout.last_good
        try:
            copies.save(path, new)
        except OSError as error:
            log.warning(
                "%s cannot be written: %s; a restart while HQ is away would use an older one", path, error.strerror
            )

    async def _adopt_known(self, sink: StatusSink) -> None:
        """Watch over what runs before HQ has answered, if the last good copy wants it: HQ may be away for long."""
        records = known_containers(self._shop.state.state)
        if self._manner.starts and self._last_good is not None and revision_to_keep(records, self._last_good):
            self._house.claim(self._last_good)
            await self._adopt(self._last_good, sink)

    async def _adopt(self, new: Desired, sink: StatusSink) -> None:
        if self._has_adopted:
            return
        self._has_adopted = True
        spec = spec_to_adopt_by(known_containers(self._shop.state.state), self._last_good, new)
        found = await take_over(self._shop.state, spec, self._shop.children)
        if found.key is not None:
            log.info("adopted %s of revision %s", ", ".join(sorted({*found.running, *found.ended})), found.key)
            self.running = RunningContainers(found.key, self._shop, sink.drain, self._wake.set)
            self.running.adopt(spec.by_key[found.key], spec, found.running, found.ended)

    # --- doing it ---------------------------------------------------------------------------------------------------

    async def _turn(self, sink: StatusSink) -> None:
        if (asked := self.wishes.take()) is not None:
            await self._take(asked, sink)
        if self.desired is None:
            return
        for action in plan(self._wanted_state(self.desired), self._actual()):
            self._do(action, self.desired, sink)
        self._update_running(self.desired)  # last: what is being stopped stays as it is
        self._speak(self.desired, sink)

    def _update_running(self, desired: Desired) -> None:
        running = self.running
        if running is not None and running.key in desired.by_key and running.leaving is None:
            running.update(desired.by_key[running.key], desired)

    def _wanted_state(self, desired: Desired) -> Wanted:
        yields = self.fenced and self._manner.stops_when_fenced
        return Wanted(desired.held_keys, None if yields else desired.ready_key)

    def _actual(self) -> Actual:
        running = self.running
        return Actual(
            installed=self.installs.installed,
            preparing=self.installs.preparing,
            resting=self.installs.resting,
            present=self.installs.present,
            running=running.key if running else self._house.occupied_by(),
            stopping=running is not None and running.leaving is not None,
        )

    def _do(self, action: Action, desired: Desired, sink: StatusSink) -> None:
        match action:
            case PrepareRevision(key):
                self.installs.begin(key, desired)
            case GiveUpRevision(key):
                self._chores.begin(f"cancel {key}", partial(self.installs.cancel, [key]))
            case RunRevision(key) if self._manner.starts:
                log.info("starting revision %s", key)
                self.running = RunningContainers(key, self._shop, sink.drain, self._wake.set)
                self.running.start(desired.by_key[key], desired)
            case StopRevision(key) if self.running is not None:
                log.info("stopping revision %s", key)
                self.running.begin_stop()
                self._chores.begin(f"stop {key}", partial(self._stop, self.running))
            case RemoveRevision(key):
                self._chores.begin(f"remove {key} ({key.digest[:12]})", partial(self._remove, key, desired))

    async def _stop(self, running: RunningContainers) -> None:
        await running.stop()
        self.running = None

    async def _remove(self, key: RevisionContentKey, desired: Desired) -> None:
        log.info("removing revision %s", key)
        await self.installs.remove(key, desired)
        await self._house.drop_traces(key, self.desired.held_keys if self.desired else ())
        await self._house.drop_unused_contents(is_idle=not self.installs.preparing)

    def _speak(self, desired: Desired, sink: StatusSink) -> None:
        stage = conditions.RunningRevision(ends=self._ends)
        if (running := self.running) is not None:
            if running.runs_as_in(desired):
                running.spec_version = desired.version
            stage = conditions.RunningRevision(
                running.key, tuple(running.statuses()), running.leaving, self._ends, running.spec_version
            )
        wall_s = self._shop.clock.wall_s()
        self.statuses = conditions.statuses(desired, self.installs.verdict, stage, self.statuses, wall_s)
        for revision_id, status in self.statuses.items():
            sink.say(SubjectId(desired.instance_id, desired.node, revision_id), status)

    # --- leaving ----------------------------------------------------------------------------------------------------

    async def _leave(self, sink: StatusSink) -> None:
        if self.wishes.gone is not None:
            await self._free(self.wishes.gone)
        elif self.desired is not None:
            self._speak(self.desired, sink)  # not ready from now on, while it is being stopped
            await self._halt()
            self._speak(self.desired, sink)
            await sink.flush(LAST_WORDS_S)

    async def _detach(self) -> None:
        """Leave what runs to a successor: nothing is left of it after an orderly end, all of it after an error."""
        await self.installs.close()
        while self._chores.is_busy:
            await self._chores.wait()
        if self.running is not None:
            await self.running.detach()

    async def _free(self, gone: Gone) -> None:
        log.warning("the instance was deleted or moved: %s", gone.message)
        await self._clear(self.wishes.last_good, keep_data=gone.moved)

    async def _clear(self, last: Desired | None, *, keep_data: bool = False) -> None:
        """End and remove everything of the instance."""
        await self._halt()
        await end_all(self._shop.state, self._shop.children)
        await self._house.free(last, keep_data=keep_data)
        self.installs.forget()

    async def _halt(self) -> None:
        """End everything in progress."""
        await self.installs.close()
        if self.running is not None and self.running.leaving is None:
            await self._stop(self.running)
        while self._chores.is_busy:
            await self._chores.wait()


def _raise_first(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and (error := task.exception()):
            raise error
