"""The supervisor: brings what is there to what is wanted, and says how far it got.

Everything that happens (a new wish, an end of preparation, a process that ends) wakes one loop, which plans anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from clients.instancectl import desired as wishes
from clients.instancectl import telling
from clients.instancectl.adopt import end_all, take_over
from clients.instancectl.desired import Desired
from clients.instancectl.fingerprint import RevisionKey
from clients.instancectl.housekeeping import Housekeeping
from clients.instancectl.installs import Installs
from clients.instancectl.plan import Action, Actual, Cancel, Prepare, Remove, Run, Stop, Wanted, plan
from clients.instancectl.prepare import Preparer
from clients.instancectl.running import Running
from clients.instancectl.sink import Sink
from clients.instancectl.source import Asked, Gone, Source, Trouble, Update
from clients.instancectl.subject import SubjectId
from clients.instancectl.workshop import Workshop
from hqpb.v1.instance_pb2 import RevisionStatus

log = logging.getLogger(__name__)
LAST_WORDS_S = 3.0
_AFTER_FAILURE_S = 5.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How it goes about its work.

    Attributes:
        starts: False: prepare and remove, but leave alone what runs, and start nothing (`--once`).
        stops_when_fenced: another reporter has the instance: stop its processes, for they run elsewhere.
    """

    starts: bool = True
    stops_when_fenced: bool = True


class Supervisor:
    """Supervises the instance of one directory.

    Attributes:
        desired: what is wanted; None: not known yet.
        running: what runs, or is being stopped.
        statuses: what was said last of each revision.
        gone: the instance was deleted or moved.
        fenced: another reporter took over, as HQ puts it; empty: nobody did.
        trouble: of the source; empty: none.
    """

    def __init__(
        self, source: Source, last_good: Desired | None, workshop: Workshop, preparer: Preparer, manner: Manner
    ) -> None:
        self.desired: Desired | None = None
        self.running: Running | None = None
        self.statuses: dict[str, RevisionStatus] = {}
        self.gone: Gone | None = None
        self.fenced = self.trouble = ""
        self._source = source
        self._last_good = last_good
        self._shop = workshop
        self._manner = manner
        self._wake = asyncio.Event()
        self.installs = Installs(preparer, workshop.state, workshop.clock, self._wake.set)
        self._house = Housekeeping(workshop.layout, workshop.state)
        self._next: Asked | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends = False

    def end(self) -> None:
        """Stop what runs and return from `run`."""
        self._ends = True
        self._wake.set()

    def look_again(self) -> None:
        """Ask the source anew."""
        self._source.look_again()

    def stopped_reporting(self, subject: SubjectId, reason: str, message: str) -> None:
        """HQ does not want to hear of a revision any more."""
        log.warning("HQ refuses reports of %s (%s): %s", subject, reason, message)
        if reason == "FENCED":
            self.fenced = message
            self._wake.set()
        else:
            self._source.look_again()

    async def run(self, sink: Sink) -> None:
        """Supervise until `end`, or until the instance is gone and has been freed.

        Raises:
            WrongDirectory: the directory belongs to another instance.
        """
        background = [asyncio.create_task(self._follow()), asyncio.create_task(sink.run())]
        for task in background:
            task.add_done_callback(lambda _: self._wake.set())
        try:
            while not (self._ends or self.gone):
                await self._wake.wait()
                self._wake.clear()
                _raise_first(background)
                await self._turn(sink)
            await self._leave(sink)
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)

    async def once(self, sink: Sink) -> bool:
        """Prepare and remove what there is to, tell once; whether every wanted revision is installed."""
        async with aclosing(self._source.updates()) as updates:
            self._heard(await anext(updates))
        await self._turn(sink)
        await self.installs.wait()
        while self._tasks:
            await asyncio.wait(self._tasks.values())
            await self._turn(sink)
        await self._turn(sink)
        await sink.flush(LAST_WORDS_S)
        await self.installs.close()
        return self.desired is not None and set(self.desired.by_key) <= self.installs.installed

    # --- what is wanted ---------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        async with aclosing(self._source.updates()) as updates:
            async for update in updates:
                self._heard(update)
                self._wake.set()

    def _heard(self, update: Update) -> None:
        match update:
            case Asked():
                before = self._next
                self._next = Asked(update.desired, update.afresh or (before is not None and before.afresh))
                self.trouble = ""
            case Gone():
                self.gone = update
            case Trouble():
                self._in_trouble(update.message)

    def _in_trouble(self, message: str) -> None:
        if message != self.trouble:
            log.warning("%s", message)
        self.trouble = message
        if self.desired is None and self._next is None and self._last_good is not None:
            log.warning("going on with the last good copy, of version %d", self._last_good.version)
            self._next = Asked(self._last_good)

    async def _take(self, asked: Asked, sink: Sink) -> None:
        """Make it the wanted state."""
        new, old = asked.desired, self.desired
        self._house.claim(new)
        if asked.afresh:
            log.warning("instance %s lives another life: nothing of the earlier one is kept", new.instance_id)
            await self._clear()
            self._house.claim(new)
        elif old is None and self._manner.starts:
            await self._adopt(new)
        if new != self._last_good:
            wishes.save(self._shop.layout.last_good, new)
        self.desired = self._last_good = new
        if old is None:
            await self._house.tidy(self.installs.present | set(new.by_key))
        for revision_id in set(self.statuses) - {key.id for key in new.by_key}:
            del self.statuses[revision_id]
            sink.forget(SubjectId(new.instance_id, new.node, revision_id))
        sink.resume()

    async def _adopt(self, new: Desired) -> None:
        key, found = await take_over(self._shop.state, new, self._shop.children)
        if key is not None:
            log.info("adopted %s of revision %s", ", ".join(sorted(found)), key)
            self.running = Running(key, self._shop, self._wake.set)
            self.running.start(new.by_key[key], new, found)

    # --- doing it ---------------------------------------------------------------------------------------------------

    async def _turn(self, sink: Sink) -> None:
        if self._next is not None:
            asked, self._next = self._next, None
            await self._take(asked, sink)
        if self.desired is None:
            return
        if self.running is not None and self.running.key in self.desired.by_key and not self.running.is_stopping:
            self.running.update(self.desired.by_key[self.running.key], self.desired)
        for action in plan(self._wanted(self.desired), self._actual()):
            self._do(action, self.desired)
        self._speak(self.desired, sink)

    def _wanted(self, desired: Desired) -> Wanted:
        fenced = self.fenced and self._manner.stops_when_fenced
        return Wanted(tuple(desired.by_key), None if fenced else desired.ready_key)

    def _actual(self) -> Actual:
        running = self.running
        return Actual(
            installed=self.installs.installed,
            preparing=self.installs.preparing,
            resting=self.installs.resting,
            present=self.installs.present,
            running=running.key if running else self._house.occupied_by(),
            stopping=running is not None and running.is_stopping,
        )

    def _do(self, action: Action, desired: Desired) -> None:
        match action:
            case Prepare(key):
                self.installs.begin(key, desired)
            case Cancel(key):
                self._begin(f"cancel {key}", self.installs.cancel([key]))
            case Run(key) if self._manner.starts:
                log.info("starting revision %s", key)
                self.running = Running(key, self._shop, self._wake.set)
                self.running.start(desired.by_key[key], desired, {})
            case Stop(key) if self.running is not None:
                log.info("stopping revision %s", key)
                self.running.is_stopping = True
                self._begin(f"stop {key}", self._stop(self.running))
            case Remove(key):
                self._begin(f"remove {key} {key.digest}", self._remove(key, desired))

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do it in the background, once at a time, and plan anew when it is done."""
        if name in self._tasks:
            work.close()
            return
        self._tasks[name] = asyncio.create_task(work, name=name)
        self._tasks[name].add_done_callback(lambda _: self._done(name))

    def _done(self, name: str) -> None:
        task = self._tasks.pop(name)
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed: %s", name, error)
            asyncio.get_running_loop().call_later(_AFTER_FAILURE_S, self._wake.set)
        else:
            self._wake.set()

    async def _stop(self, running: Running) -> None:
        await running.stop()
        self.running = None

    async def _remove(self, key: RevisionKey, desired: Desired) -> None:
        log.info("removing revision %s", key)
        await self.installs.remove(key, desired)
        await self._house.drop_traces(key, self.desired.by_key if self.desired else ())
        await self._house.drop_unused_contents(is_idle=not self.installs.preparing)

    # --- saying it, and leaving -------------------------------------------------------------------------------------

    def _speak(self, desired: Desired, sink: Sink) -> None:
        wall_s = self._shop.clock.wall_s()
        said = telling.statuses(desired, self.installs.verdict, self._stage(), self.statuses, wall_s)
        for revision_id, status in said.items():
            self.statuses[revision_id] = status
            sink.say(SubjectId(desired.instance_id, desired.node, revision_id), status)

    def _stage(self) -> telling.Stage:
        running = self.running
        if running is None:
            return telling.Stage(ends=self._ends)
        return telling.Stage(running.key, tuple(running.statuses()), running.is_stopping, self._ends)

    async def _leave(self, sink: Sink) -> None:
        if self.gone is not None:
            log.warning("the instance is gone: %s", self.gone.message)
        elif self.desired is not None:
            self._speak(self.desired, sink)
        await self._halt()
        if self.gone is not None:
            await self._house.free(self._last_good, keep_data=self.gone.moved)
        elif self.desired is not None:
            self._speak(self.desired, sink)
            await sink.flush(LAST_WORDS_S)

    async def _halt(self) -> None:
        """End everything under way."""
        await self.installs.close()
        if self.gone is not None and self.running is None:
            await end_all(self._shop.state, self._shop.children)
        if self.running is not None and not self.running.is_stopping:
            await self._stop(self.running)
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def _clear(self) -> None:
        await self._halt()
        await end_all(self._shop.state, self._shop.children)
        await self._house.free(self._last_good, keep_data=False)
        self.installs.forget()


def _raise_first(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and (error := task.exception()):
            raise error
