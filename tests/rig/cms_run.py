"""The CMS under faults: real processes of it, HQ and etcd, agents that report, clients that use what they are granted.

Faults: a process is killed, paused, cut off from HQ, or cut off from etcd; HQ is paused. Half of the work is brief, and
in the middle there is a freeze. What clients did is judged by tests/checker/leave.py; a run that granted too little has
said nothing. A run for a bug that was put in goes on until that bug has had its effect, not for a time.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hqclient import Client
from store.embedded import EmbeddedEtcd
from tests.checker.leave import STARVED, Ask, Service, Work, check, check_asks, check_calendar
from tests.checker.violation import Violation
from tests.cms.cloud import Crew, http, task
from tests.rig.controller_faults import Faults, Process, cut, killed, paused, stalled, strike
from tests.support.faulty_proxy import Proxy

TERM_S: Final = 2.0
REPORT_S: Final = 1.0
LEAST_GRANTS_PER_MINUTE: Final = 10
_HOSTS: Final = 12
_FLOOR: Final = _HOSTS - 3
_BROKEN: Final = "h0"  # nothing is up there
_START_S: Final = 30.0
_LAST: Final = 3  # as many are asked for when all faults are over: oks that nobody came to use hold two hosts at most
_LAST_PATIENCE_S: Final = 30.0
_FROZEN_AFTER_S: Final = 15.0  # at most
_FROZEN: Final = "frozen"
_FREEZE: Final = {"name": "all", "freeze": [{"begin": "2000-01-01", "end": "2100-01-01", "reason": "calm"}]}


@dataclass
class Seat:
    """A process of the CMS with the two networks it needs."""

    process: Process
    to_etcd: Proxy
    to_hq: Proxy


@dataclass
class CmsRun:
    """One run: `run`, then `broken`.

    Attributes:
        bug: of tests/cms/test_seeded_bugs.py, which its processes have; empty: none.
        awaited: the run ends as soon as this promise can be found broken.
        frozen: from when to when it is certain that there is a freeze.
    """

    directory: Path
    seed: int
    say: Callable[[str], None] = print
    bug: str = ""
    awaited: str = ""
    works: list[Work] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    frozen: tuple[float, float] = (0.0, 0.0)
    struck: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)  # what polls said they wait for, in a word
    grants: int = 0
    _serial: int = 0

    async def run(self, duration_s: float) -> None:
        """Faults for so long; at most so long, if a broken promise is awaited.

        Raises TimeoutError: it did not recover when the faults were over.
        """
        self.rng = random.Random(self.seed)
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self.loop = asyncio.get_running_loop()
            self._ends = self.loop.time() + duration_s
            async with asyncio.TaskGroup() as tasks:
                crew = tasks.create_task(self._crew.run())
                clients = [tasks.create_task(self._client(number)) for number in range(4)]
                clients.append(tasks.create_task(self._freeze(duration_s)))
                self.struck += await strike(self.rng, self._goes_on, 2.5 * TERM_S, self.say, self._faults)
                async with asyncio.timeout(90):
                    await asyncio.gather(*clients)
                await asyncio.gather(*map(self._ask_last, self._least_used()))
                crew.cancel()

    def _goes_on(self) -> bool:
        return self.loop.time() < self._ends and not (self.awaited and self._can_be_found())

    def _can_be_found(self) -> bool:
        """Whether what is awaited is broken, or will be once the last ask for more than the hosts that were held."""
        if self.awaited == STARVED.word:
            held = {host for work in self.works for host in work.hosts if host != _BROKEN}
            return len(held) >= _HOSTS - _FLOOR - 1
        return any(one.word == self.awaited for one in self.broken())

    def _least_used(self) -> list[str]:
        used = Counter(host for work in self.works for host in work.hosts)
        return sorted((host for host in _hosts() if host != _BROKEN), key=lambda host: used[host])[:_LAST]

    def broken(self) -> list[Violation]:
        """Broken promises: FLOOR, CALENDAR, BOUNCE and, for what was asked for last, STARVED.

        Brief work may begin after other work was granted and before that begins: so its floor is that of all work
        together, and the ordinary one that of all other work.
        """
        ordinary = [work for work in self.works if not work.is_brief]
        all_brief = [
            replace(one, floor=one.floor if one.brief_floor is None else one.brief_floor) for one in self.services
        ]
        # Who asked before may have had the ok before, and begin late.
        late = {ask.task for ask in self.asks if ask.asked >= self.frozen[0]}
        return [
            *check(ordinary, self.services),
            *check(self.works, all_brief),
            *check_calendar([work for work in self.works if work.task in late], [self.frozen]),
            *check_asks(self.asks, 0.0, float("inf")),  # they give up before they could starve
            *check_asks(self.asks[-_LAST:], self.loop.time(), _LAST_PATIENCE_S),
        ]

    # --- processes ----------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        etcd = EmbeddedEtcd(self.directory / "etcd")
        await etcd.start()
        stack.push_async_callback(etcd.stop)
        where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        words = ("hq.main", "serve", "--etcd", etcd.endpoint, "--cluster", "ams", "--report-interval", f"{REPORT_S:g}s")
        self._hq = await self._process(stack, "hq", (*words, *where))
        self._seats = []
        for name in ("cms-1", "cms-2"):
            to_etcd = await stack.enter_async_context(Proxy(etcd.endpoint))
            to_hq = await stack.enter_async_context(Proxy(self._hq.grpc))
            program = ("tests.cms.broken_cms", self.bug) if self.bug else ("cms.main",)
            cms = (*program, "serve", "--etcd", to_etcd.endpoint, "--location", f"ams={to_hq.endpoint}")
            more = ("--term", f"{TERM_S:g}s", "--settle", "0.5s", "--lapse", "3s", "--fence", "500ms")
            process = await self._process(stack, name, (*cms, *more, *where))
            self._seats.append(Seat(process, to_etcd, to_hq))
        self._crew = Crew(await stack.enter_async_context(Client([self._hq.grpc])))
        await self._fill()

    async def _process(self, stack: AsyncExitStack, name: str, words: tuple[str, ...]) -> Process:
        process = Process(words, self.directory / f"{name}.log")
        stack.push_async_callback(process.kill)
        await process.start()
        return process

    async def _fill(self) -> None:
        """Two services over the hosts; one instance of each is broken for good."""
        brief = {"maxUnavailable": "5", "within": "15m"}
        for name, every, rule, floor, brief_floor in (
            ("web", 1, {"maxUnavailable": "3", "brief": brief}, _FLOOR, _FLOOR - 2),
            ("db", 2, {"minReady": "4"}, 4, None),
        ):
            hosts = {f"{name}-{n}": f"h{n}" for n in range(0, _HOSTS, every)}
            for instance_id, host in hosts.items():
                await self._crew.add(instance_id, name, host)
            await self._crew.report()
            self._crew.ready[f"{name}-0"] = False
            await self._crew.report()
            self.services.append(Service(name, hosts, frozenset({f"{name}-0"}), floor, brief_floor))
            async with asyncio.timeout(_START_S):
                while (await self._connect("PutBudget", {"budget": {"name": name, "service": name, **rule}})) != 200:
                    await asyncio.sleep(0.2)

    # --- faults -------------------------------------------------------------------------------------------------------

    def _faults(self) -> tuple[str, Faults]:
        seat = self.rng.choice(self._seats)
        return seat.process.log.stem, {
            "killed": lambda: killed(seat.process),
            "paused": lambda: paused(seat.process),
            "without_hq": lambda: cut(seat.to_hq),
            "without_etcd": lambda: cut(seat.to_etcd),
            "etcd_stalls": lambda: stalled(seat.to_etcd),
            "hq_paused": lambda: paused(self._hq),
        }

    # --- clients ------------------------------------------------------------------------------------------------------

    async def _freeze(self, duration_s: float) -> None:
        await asyncio.sleep(min(duration_s / 2, _FROZEN_AFTER_S))
        while await self._connect("PutWindows", {"windows": _FREEZE}) != 200:
            await asyncio.sleep(0.2)
        began = self.loop.time()
        await self._use(random.Random(self.seed), {_FROZEN: (_BROKEN,)}, "redeploy", 2 * _LAST_PATIENCE_S)
        await asyncio.sleep(max(3.0, duration_s / 20))
        self.frozen = (began, self.loop.time())
        while await self._connect("DeleteWindows", {"name": "all"}) not in (200, 404):
            await asyncio.sleep(0.2)

    async def _client(self, number: int) -> None:
        rng = random.Random(f"{self.seed} {number}")
        while self._goes_on():
            await self._use(rng, self._wishes(rng), rng.choice(("reboot", "redeploy")), rng.uniform(5, 20))

    def _wishes(self, rng: random.Random) -> dict[str, tuple[str, ...]]:
        """The hosts of a task, or of two of a group, by its id."""
        self._serial += 1
        parts = 2 if rng.random() < 0.3 else 1
        return {f"t{self._serial}-{part}": tuple(rng.sample(_hosts(), rng.choice((1, 1, 2)))) for part in range(parts)}

    async def _use(self, rng: random.Random, ids: dict[str, tuple[str, ...]], action: str, patience_s: float) -> None:
        """Ask, work if it is granted, and give it back."""
        asked = self.loop.time()
        await self._ask(rng, ids, action)
        try:
            ask = await self._wait(rng, ids, asked, patience_s)
            self.asks.append(ask)
            if ask.granted is not None:
                await self._work(rng, ask.task, ids, is_brief=action == "reboot")
        finally:
            for task_id in ids:
                await self._end(rng, task_id)

    async def _ask_last(self, host: str) -> None:
        await self._use(random.Random(f"{self.seed} {host}"), {f"last-{host}": (host,)}, "redeploy", _LAST_PATIENCE_S)

    async def _ask(self, rng: random.Random, ids: dict[str, tuple[str, ...]], action: str) -> None:
        group = {"host_group_id": f"of {next(iter(ids))}"} if len(ids) > 1 else {}
        confirm = rng.random() < 0.5
        for task_id, hosts in ids.items():
            body = task(task_id, *hosts, action=action, confirm=confirm, **group)
            while (await self._call(rng, "POST", "", body))[0] != 200:
                await asyncio.sleep(0.2)

    async def _wait(self, rng: random.Random, ids: dict[str, tuple[str, ...]], asked: float, patience_s: float) -> Ask:
        """Poll, and confirm; patient as people are."""
        ask = Ask("+".join(ids), asked, None)
        was_ok, first = False, next(iter(ids))
        while self.loop.time() < asked + patience_s:
            replies = [await self._call(rng, "GET", f"/{task_id}") for task_id in ids]
            waiting = [body for status, body in replies if status == 200 and body["status"] != "ok"]
            self.waited += Counter(body["message"].partition(" ")[0] for body in waiting)
            if _FROZEN in ids and any("opens_in_s" in body["details"] for body in waiting):
                return ask  # nothing but the freeze is in its way, and that is the answer
            if was_ok and waiting:
                ask, was_ok = replace(ask, taken_back=ask.taken_back + 1), False
            if all(status == 200 and body["status"] == "ok" for status, body in replies):
                was_ok = True
                if not any(body["details"]["provisional"] for _, body in replies):
                    return replace(ask, granted=self.loop.time())
                if (await self._call(rng, "POST", f"/{first}/confirm"))[0] == 200:
                    continue  # look once more: all of the group must be final
            await asyncio.sleep(rng.uniform(0.1, 0.4))
        return ask

    async def _work(self, rng: random.Random, name: str, ids: dict[str, tuple[str, ...]], *, is_brief: bool) -> None:
        hosts = tuple({host for each in ids.values() for host in each})
        self.grants += 1
        began = self.loop.time()
        touched = [name for service in self.services for name, host in service.hosts.items() if host in hosts]
        self._crew.silent.update(touched)
        await asyncio.sleep(rng.uniform(0.2, 1.5))
        self._crew.silent.difference_update(touched)
        self.works.append(Work(name, hosts, began, self.loop.time(), is_brief))

    async def _end(self, rng: random.Random, task_id: str) -> None:
        while (await self._call(rng, "DELETE", f"/{task_id}"))[0] not in (204, 404):
            await asyncio.sleep(0.2)

    async def _call(self, rng: random.Random, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """At either process; 0: it did not answer."""
        seat = rng.choice(self._seats)
        url = f"http://{seat.process.http}/v1.4/tasks{path}"
        data = None if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(4):
                reply = await asyncio.to_thread(http, method, url, data, 3.0)
        except (OSError, TimeoutError, ValueError):
            self.answers[f"{method} none"] += 1
            return 0, None
        self.answers[f"{method} {reply.status}"] += 1
        return reply.status, reply.body

    async def _connect(self, name: str, body: object) -> int:
        url = f"http://{self._seats[0].process.http}/cms.v1.CmsService/{name}"
        with suppress(OSError):
            return (await asyncio.to_thread(http, "POST", url, json.dumps(body).encode())).status
        return 0


def _hosts() -> list[str]:
    return [f"h{n}" for n in range(_HOSTS)]
