"""Wall-E under faults: real processes over etcd, machines and records that break, a CMS, people who look after fuses.

Machines that break again and again are given up, as are those that the CMS rejects; people take them back. Some come
back by themselves, some have dead controllers, a source always says fine, a planned reboot installs a bad kernel, and
the CMS rejects dry runs and takes oks back. Faults: a process is killed, paused, or cut off from etcd; etcd stalls; the
CMS, the management controllers or the name server are away or stall. What was done is judged by
tests/checker/repairs.py over the store's history, as it is written; a run that did too little has said nothing. A run
for a bug that was put in goes on until that bug has had its effect, not for a time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import yaml
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from store.keys import prefix_end
from tests.checker.repairs import History, dns_once, once, seldom
from tests.checker.violation import Promise
from tests.rig.controller_faults import Faults, Process, cut, killed, paused, stalled, strike
from tests.support.faulty_proxy import Proxy
from tests.support.reserved_port import kept_addresses
from tests.support.walle.anywhere import controller_entry
from tests.support.walle.fake_cms import FakeCms, fake_cms
from tests.support.walle.fake_names import FakeNames, fake_names
from tests.support.walle.fake_redfish import FakeRedfish, fake_redfish
from tests.support.walle.running import call_json
from walle.fuses.limits import parse_limit
from walle.process.automaton import COLLECT_EVERY_S, LOOK_AGAIN_S
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATUS_READY, OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import SCENARIO_KIND_REBOOT, Cms, Project, Scheme
from wallepb.v1.service_pb2 import STEERING_CONTINUE

PREFIX: Final = b"/walle/v1/"
GLOBAL: Final = {"max_rebooted_hosts": ["20s:12"], "max_dns_fixes": ["20s:8"], "max_dead_hosts": ["20s:3"]}
LIMITS: Final = {"UNREACHABLE": ("10s:5", "40s:14"), "dns-fixes": ("10s:3", "40s:9"), "dead": ("10s:2", "40s:5")}
LEAST_REPAIRS_PER_MINUTE: Final = 6
LEAST_DNS_FIXES_PER_MINUTE: Final = 3
TERM_S: Final = 2.0
SETTLE_MS: Final = 1000
KERNEL: Final = "kernel"
_DEAD_CONTROLLERS: Final = ("m22", "m23")
_NEW_KERNEL: Final = ("m0", "m1", "m2", "m3", "m4", "m5")
_WAVE: Final = "2"
_MACHINES: Final = 24
_CHECK: Final = "UNREACHABLE"
_LONG_TERM_S: Final = 10.0
_FOUND_IN_S: Final = 300.0
_SETTLES_IN_S: Final = 240.0  # pauses are up to two minutes long
_STRAY: Final = "tasks without an operation"
_STRAYS_IN_S: Final = COLLECT_EVERY_S + 2 * LOOK_AGAIN_S
_STEPS: Final = 3  # a machine that breaks once more is dead
LEAVE = Promise(
    "LEAVE",
    "no machine is reset without a final ok of its CMS",
    "walle/healing/operation.py (effects, is_confirmed), walle/process/healer.py",
)
SETTLED = Promise(
    "SETTLED",
    "once the faults are over every operation ends, and every task is given back",
    "walle/tables.py, walle/process/healer.py",
)


@dataclass
class WalleRun:
    """One run. `broken` says what does not hold.

    Attributes:
        program: the module to run, with its first words: Wall-E, or one with a bug.
        awaited: the run goes on after the faults, and ends as soon as this promise is broken.
        least: repairs and DNS fixes; after the faults the run goes on until there are so many.
    """

    directory: Path
    seed: int
    say: Callable[[str], None] = print
    program: tuple[str, ...] = ("walle.main",)
    awaited: str = ""
    least: tuple[int, int] = (0, 0)
    broken: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    history: History = field(
        default_factory=lambda: History(PREFIX, {k: parse_limit(v) for k, v in GLOBAL.items()}, SETTLE_MS)
    )
    ill: set[str] = field(default_factory=set)
    bad_kernel: set[str] = field(default_factory=lambda: set(_NEW_KERNEL))
    _addresses: dict[str, str] = field(default_factory=dict)
    _replayed: int = 0  # the last revision

    async def run(self, duration_s: float) -> None:
        """Strike for so long, wait until all is settled, and judge.

        If a broken promise is awaited: after the faults the world goes on until it is, and nothing need settle.
        """
        self.rng = random.Random(self.seed)
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self.loop = asyncio.get_running_loop()
            self._ends = self.loop.time() + duration_s
            async with asyncio.TaskGroup() as tasks:
                parts = (self._break(), self._blink(), self._monitor(), self._people(), self._plan())
                world = [tasks.create_task(each) for each in parts]
                following = tasks.create_task(self._follow())
                self.struck += await strike(self.rng, self._is_struck, 2.5 * TERM_S, self.say, self._faults)
                while not self._has_done_all() and self.loop.time() < self._ends + _FOUND_IN_S:
                    await asyncio.sleep(0.5)
                world[0].cancel()
                world[1].cancel()
                self._calm()
                self.ill.clear()  # those that limits have left ill, and those that are dead
                self.names.records = {machine: {address} for machine, address in self._addresses.items()}
                if not self.awaited:
                    await self._settle()
                for task in world:
                    task.cancel()
                self.broken += await self._judge()
                following.cancel()

    def _is_struck(self) -> bool:
        return self.loop.time() < self._ends and not self._is_found()

    def _is_found(self) -> bool:
        return bool(self.awaited) and any(one.startswith(self.awaited) for one in [*self.broken, *self._so_far()])

    def _has_done_all(self) -> bool:
        if self.awaited:
            return self._is_found()
        return self.repairs >= self.least[0] and self.dns_fixes >= self.least[1]

    @property
    def repairs(self) -> int:
        return sum(len(times) for times in self.bmc.resets.values())

    @property
    def dns_fixes(self) -> int:
        return sum(self.names.updates.values())

    # --- the world ----------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        etcd = EmbeddedEtcd(self.directory / "etcd")
        await etcd.start()
        stack.push_async_callback(etcd.stop)
        self._store = EtcdStore(EtcdConfig((etcd.endpoint,)))
        stack.push_async_callback(self._store.close)
        self.cms: FakeCms = stack.enter_context(fake_cms(provisional=True))
        self.bmc: FakeRedfish = stack.enter_context(fake_redfish())
        self.bmc.look, self.bmc.dead = self._reset, set(_DEAD_CONTROLLERS)
        self._to_cms = await stack.enter_async_context(Proxy(httpx.URL(self.cms.url).netloc.decode()))
        self._to_bmc = await stack.enter_async_context(Proxy(self.bmc.address))
        self.names: FakeNames = stack.enter_context(fake_names())
        self._to_names = await stack.enter_async_context(Proxy(self.names.address))
        config = self.directory / "walle.yaml"
        config.write_text(yaml.safe_dump(self._config()))
        self._seats: list[tuple[Process, Proxy]] = []
        for name in ("walle-1", "walle-2"):
            to_etcd = await stack.enter_async_context(Proxy(etcd.endpoint))
            words = (*self.program, "serve", "--etcd", to_etcd.endpoint, "--config", str(config))
            where = kept_addresses()  # the same when it is started again: recorders know it by that
            # A machine with too much to do loses a short term again and again, and does nothing in which to find a bug.
            term_s = _LONG_TERM_S if self.awaited else TERM_S
            more = ("--term", f"{term_s:g}s", "--settle", f"{SETTLE_MS}ms", *where)
            process = Process((*words, *more), self.directory / f"{name}.log")
            stack.push_async_callback(process.kill)
            await process.start()
            self._seats.append((process, to_etcd))
        await self._fill()

    def _config(self) -> dict[str, object]:
        bmc: dict[str, object] = {"type": "redfish", "url": f"http://{self._to_bmc.endpoint}", "system": "{host}"}
        bmc |= {"timeout_s": 2, "reset_shows_s": 15}  # longer than anything is paused or stalled
        server, _, port = self._to_names.endpoint.rpartition(":")
        zone = {"type": "dns", "server": server, "port": int(port), "zone": "."}
        operations = {"reboot": "bmc", "dns-fix": "zone"}
        to_bmc, to_cms = f"http://{self._to_bmc.endpoint}", f"http://{self._to_cms.endpoint}"
        listed = {"redfish": [controller_entry(to_bmc)], "cms": [{"url": to_cms}]}
        return {"executors": {"bmc": bmc, "zone": zone}, "operations": operations, "automation": GLOBAL, **listed}

    async def _fill(self) -> None:
        scheme = [Scheme(check=_CHECK, step=[OPERATION_KIND_REBOOT] * _STEPS)]
        cms = [Cms(url=f"http://{self._to_cms.endpoint}/cms", version="v1.4")]
        limits = {name: parse_limit(pairs) for name, pairs in LIMITS.items()}
        for project in ("web", "db"):
            made = Project(id=project, cms=cms, scheme=scheme, limits=limits)
            await self._ask(pb.CreateProjectRequest(project=made))
        for number in range(_MACHINES):
            machine, project, address = f"m{number}", ("web", "db")[number % 2], f"10.0.0.{number}"
            self._addresses[machine], self.names.records[machine] = address, {address}
            await self._ask(pb.AddHostRequest(host=machine, project=project, address=[address], ignore_cms=True))

    def _reset(self, machine: str) -> None:
        """On the controller's thread."""
        held = self._held(machine)
        if not any(task["status"] == "ok" and not task.get("details", {}).get("provisional") for task in held):
            self.broken.append(str(LEAVE.broken(f"{machine} was reset, its tasks are {held}")))
        if machine in self.bad_kernel:
            self.bad_kernel.discard(machine)
            self.ill.add(machine)
        else:
            self.ill.discard(machine)

    def _calm(self) -> None:
        """Nothing is wrong any more but what was broken."""
        self.cms.verdict = self.cms.dry_verdict = self.cms.confirm_verdict = "ok"
        self.bmc.dead.clear()
        self.bad_kernel.clear()
        self._decide_waiting()

    def _decide_waiting(self) -> None:
        for task in list(self.cms.tasks.values()):
            if task["status"] == "in-process":
                task["status"] = "ok"

    async def _blink(self) -> None:
        """Out of reach for less than the settle time."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5))
            machine = f"m{self.rng.randrange(_MACHINES)}"
            if machine not in self.ill and not self._held(machine):
                self.ill.add(machine)
                await asyncio.sleep(self.rng.uniform(0.1, 0.4) * SETTLE_MS / 1000)
                self.ill.discard(machine)

    async def _plan(self) -> None:
        """A planned reboot of some machines, whose new kernel is bad; whoever comes goes on with it in the end."""
        order = pb.AddScenarioRequest(
            scenario=KERNEL, kind=SCENARIO_KIND_REBOOT, hosts=_NEW_KERNEL, wave_size=_WAVE, reason="a new kernel"
        )
        await self._ask(order)

    async def _break(self) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.2, 1.2))
            self.cms.verdict, self.cms.dry_verdict = ("rejected" if self.rng.random() < 0.1 else "ok" for _ in "12")
            self.cms.confirm_verdict = "in-process" if self.rng.random() < 0.1 else "ok"
            machine = f"m{self.rng.randrange(_MACHINES)}"
            if self.rng.random() < 0.3:
                self.names.records[machine] = {"10.9.9.9"}
            elif not self._held(machine):  # what breaks again while it is looked at waits for a quarter of an hour
                self.ill.add(machine)

    def _held(self, machine: str) -> list[dict[str, Any]]:
        """Its tasks in the CMS."""
        return [task for task in list(self.cms.tasks.values()) if machine in task["hosts"]]

    async def _monitor(self) -> None:
        """Says all it knows again and again, as monitoring does."""
        while True:
            known = [self._seen(machine, address) for machine, address in self._addresses.items()]
            await self._try(pb.ReportChecksRequest(hosts=known))
            await asyncio.sleep(0.2)

    def _seen(self, machine: str, address: str) -> pb.HostChecks:
        found = {_CHECK: machine in self.ill, "dns": self.names.records[machine] != {address}}
        checks = [pb.CheckReport(name=name, failing=is_bad, source="rig") for name, is_bad in found.items()]
        checks += [pb.CheckReport(name=name, source="optimist") for name in found]
        return pb.HostChecks(host=machine, check=checks)

    async def _people(self) -> None:
        """Somebody comes some seconds after a fuse went out, switches on with credits or without, and revives hosts."""
        rng = random.Random(f"{self.seed} people")
        while True:
            await asyncio.sleep(rng.uniform(2, 6))
            self._decide_waiting()
            await self._try(pb.SteerScenarioRequest(scenario=KERNEL, steering=STEERING_CONTINUE, reason="go on"))
            settings = await self._try(pb.GetSettingsRequest())
            if _is_off(settings):
                await self._try(pb.SwitchAutomationRequest(on=True, reason="looked at it"))
            for project in ("web", "db"):
                if _is_off(await self._try(pb.GetProjectRequest(project=project))):
                    order = pb.SwitchAutomationRequest(project=project, on=True, reason="looked at it")
                    if rng.random() < 0.5:
                        order.credits[_CHECK] = rng.randrange(1, 5)
                        order.credit_time.CopyFrom(Duration(seconds=rng.randrange(2, 12)))
                    await self._try(order)
            for dead in await self._dead():
                if rng.random() < 0.3:
                    await self._try(pb.SetHostStateRequest(host=dead, status=HOST_STATUS_READY, reason="repaired"))

    async def _dead(self) -> list[str]:
        shown = await self._try(pb.ListHostsRequest()) or {"hosts": []}
        hosts = [one["host"] for one in shown.get("hosts", [])]
        return [host["name"] for host in hosts if host.get("status") == "HOST_STATUS_DEAD"]

    async def _settle(self) -> None:
        """Wait until nothing is ill, nothing is done, nothing is held."""
        began = self.loop.time()
        while (left := await self._left()) and self.loop.time() < began + _SETTLES_IN_S:
            await asyncio.sleep(0.5)
        # A call that was cut off may reach the CMS after its task was deleted.
        while left and set(left) == {_STRAY} and self.loop.time() < began + _SETTLES_IN_S + _STRAYS_IN_S:
            await asyncio.sleep(0.5)
            left = await self._left()
        if left:
            self.broken.append(str(SETTLED.broken(f"not in time; left: {left}")))

    async def _left(self) -> dict[str, object]:
        """What is not settled, by kind."""
        shown = await self._try(pb.ListHostsRequest())
        if shown is None:
            return {"answer": "none"}
        hosts = [one["host"] for one in shown["hosts"]]
        under_way = {one["name"]: one["operation"] for one in hosts if "operation" in one}
        wanted = {task["id"] for one in under_way.values() for task in (*one.get("task", ()), *one.get("oldTask", ()))}
        strays = [task for task_id, task in list(self.cms.tasks.items()) if task_id not in wanted]
        left = {"ill": sorted(self.ill), "operations": under_way, _STRAY: strays}
        return {kind: what for kind, what in left.items() if what}

    # --- calls --------------------------------------------------------------------------------------------------------

    async def _ask(self, request: Message) -> None:
        async with asyncio.timeout(60):
            while await self._try(request) is None:
                await asyncio.sleep(0.3)

    async def _try(self, request: Message) -> Mapping[str, Any] | None:
        """At either process; None: it did not answer, or refused."""
        process, _ = self.rng.choice(self._seats)
        # AttributeError: httpx's, over uvloop, when the process dies while the connection is made.
        with suppress(httpx.HTTPError, AssertionError, TimeoutError, AttributeError):
            async with asyncio.timeout(4):
                return await call_json(process.http, request)
        return None

    # --- faults -------------------------------------------------------------------------------------------------------

    def _faults(self) -> tuple[str, Faults]:
        process, to_etcd = self.rng.choice(self._seats)
        return process.log.stem, {
            "killed": lambda: killed(process),
            "paused": lambda: paused(process),
            "without_etcd": lambda: cut(to_etcd),
            "etcd_stalls": lambda: stalled(to_etcd),
            "cms_away": lambda: cut(self._to_cms),
            "cms_stalls": lambda: stalled(self._to_cms),
            "controllers_away": lambda: cut(self._to_bmc),
            "controllers_stall": lambda: stalled(self._to_bmc),
            "names_away": lambda: cut(self._to_names),
            "names_stall": lambda: stalled(self._to_names),
        }

    # --- judging ------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        async with self._store.watch(PREFIX, prefix_end(PREFIX), after=0) as stream:
            async for batch in stream:
                self.history.replay(batch)
                self._replayed = batch.revision

    async def _judge(self) -> list[str]:
        """What was broken, once all of the history is replayed."""
        _, newest, _ = await self._store.newest(PREFIX, prefix_end(PREFIX))
        async with asyncio.timeout(60):
            while self._replayed < newest:
                await asyncio.sleep(0.1)
        return self._so_far()

    def _so_far(self) -> list[str]:
        """While the world goes on, what it counts may be ahead of the history."""
        resets = {machine: len(times) for machine, times in list(self.bmc.resets.items())}
        found = [*self.history.broken, *once(resets, self.history.intents)]
        found += dns_once(dict(self.names.updates), self.history.dns_attempts)
        found += seldom(list(self.cms.calls), sum(self.struck.values()))
        return list(map(str, found))


def _is_off(shown: Mapping[str, Any] | None) -> bool:
    switches = (shown or {}).get("fuse", {})
    return any(switches.get(name, {}).get("off") for name in ("healing", "dns"))
