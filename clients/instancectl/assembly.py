"""The one place where the objects of supervisors are wired together."""

from __future__ import annotations

import asyncio
import random
import shlex
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from instancectl.clock import InstancectlClock, MachineClock
from instancectl.containers.workshop import Workshop
from instancectl.content.fetch import ContentStore, Sources
from instancectl.content.guard import Guard, NoGuard
from instancectl.content.prepare import Preparer
from instancectl.content.secrets import CommandProvider, DirectoryProvider, SecretProvider, SecretValues
from instancectl.control_socket import ControlServer, serve
from instancectl.files import hold_lock
from instancectl.layout import Layout
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.limits import best_limiter
from instancectl.processes.reaper import ProcessReaper
from instancectl.reports.reporter import StatusReporter
from instancectl.reports.sink import NoSink, StatusSink
from instancectl.route import HqRoute, route_of
from instancectl.settings import Manner, ProviderSpec, RunSettings
from instancectl.state import StateFile
from instancectl.status import snapshot
from instancectl.supervisor import Supervisor
from instancectl.wanted import desired as wishes
from instancectl.wanted.desired import Desired
from instancectl.wanted.hq_source import AbsencePolicy, HqSource
from instancectl.wanted.source import DesiredSource, FileSource

# Revisions of a node that are fetched and placed at a time: a few, so that checks and heartbeats get their turn, and
# more than are likely to hang on a dead mount.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class SharedTools:
    """Tools that all instances of a process share. `route`: None: nothing is reported."""

    clock: InstancectlClock
    rng: random.Random
    reaper: ProcessReaper
    route: HqRoute | None
    guard: Guard = field(default_factory=NoGuard)
    absences: AbsencePolicy | None = None
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))


@dataclass(frozen=True, slots=True)
class SupervisedDirectory:
    """A directory that is locked by us, with its supervisor and the sink of its reports."""

    layout: Layout
    supervisor: Supervisor
    sink: StatusSink


async def run(settings: RunSettings) -> bool:
    """Supervise until told to end; with `once`, return whether everything wanted is installed.

    Raises:
        Occupied, StateUnreadable, WrongDirectory: the directory cannot be used; str() says what to do.
        OSError: a file operation on it failed.
    """
    async with AsyncExitStack() as stack:
        rng = random.Random()
        route = None
        if settings.servers or settings.host_agent:
            route = route_of(settings.host_agent, settings.servers, settings.credentials, rng)
            stack.push_async_callback(route.close)
        tools = SharedTools(MachineClock(), rng, stack.enter_context(open_reaper()), route)
        directory = stack.enter_context(open_directory(settings, tools))
        if settings.once:
            return await directory.supervisor.once(directory.sink)
        stack.enter_context(_signals(directory.supervisor))
        await stack.enter_async_context(answer_status(directory))
        await directory.supervisor.run(directory.sink)
        return True


@contextmanager
def open_directory(settings: RunSettings, tools: SharedTools) -> Iterator[SupervisedDirectory]:
    """Lock the directory of an instance and wire its supervisor, which has not begun.

    Raises:
        Occupied, StateUnreadable: the directory cannot be used; str() says what to do.
        OSError: a file operation on it failed.
    """
    layout = Layout.at(settings.directory, settings.store)
    layout.make()
    with hold_lock(layout.lock):
        last_good = wishes.load(layout.last_good)
        workshop = _workshop(settings, layout, tools)
        allowed = settings.file_root, settings.fetch_from, settings.fetch_bytes, settings.allow_unchecked
        store = ContentStore(layout.store, Sources(*allowed))
        preparer = Preparer(
            layout,
            store,
            workshop.secrets,
            workshop.commands,
            workshop.guard,
            workshop.limiter,
            workshop.output,
            tools.slots,
        )
        manner = Manner(starts=not settings.once, stops_when_fenced=settings.when_fenced == "stop")
        source = _source(settings, last_good, tools)
        supervisor = Supervisor(source, last_good, workshop, preparer, manner)
        yield SupervisedDirectory(layout, supervisor, _sink(supervisor, tools))


def _workshop(settings: RunSettings, layout: Layout, tools: SharedTools) -> Workshop:
    state = StateFile(layout.state)
    children = Children(state.state.owner, tools.reaper)
    commands = Commands(children)
    providers = {spec.name: _provider(spec, commands) for spec in settings.providers}
    return Workshop(
        layout=layout,
        state=state,
        children=children,
        commands=commands,
        secrets=SecretValues(providers),
        guard=tools.guard,
        limiter=best_limiter(f"{settings.instance_id}@{layout.root}"),
        restarts=settings.restarts,
        output=settings.output,
        clock=tools.clock,
        rng=tools.rng,
    )


def _provider(spec: ProviderSpec, commands: Commands) -> SecretProvider:
    if spec.kind == "dir":
        return DirectoryProvider(Path(spec.place).absolute())
    return CommandProvider(shlex.split(spec.place), commands)


def _source(settings: RunSettings, last_good: Desired | None, tools: SharedTools) -> DesiredSource:
    if settings.file is not None:
        return FileSource(settings.file, settings.node, tools.clock)
    assert tools.route is not None, "checked by the command line"
    return HqSource(tools.route, settings.instance_id, settings.node, last_good, tools.clock, tools.rng, tools.absences)


def _sink(supervisor: Supervisor, tools: SharedTools) -> StatusSink:
    if tools.route is None:
        return NoSink()
    return StatusReporter(tools.route, tools.clock, tools.rng, supervisor.on_reporting_stopped)


@contextmanager
def open_reaper() -> Iterator[ProcessReaper]:
    """The reaper of this process, at work."""
    reaper = ProcessReaper()
    reaper.open()
    try:
        yield reaper
    finally:
        reaper.close()


@contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    ending = (signal.SIGTERM, signal.SIGINT)
    for number in ending:
        loop.add_signal_handler(number, supervisor.end)
    loop.add_signal_handler(signal.SIGHUP, supervisor.wishes.look_again)
    try:
        yield
    finally:
        for number in (*ending, signal.SIGHUP):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def answer_status(directory: SupervisedDirectory) -> AsyncIterator[None]:
    """Inside the block, answer `instancectl status` for a directory."""
    supervisor, sink = directory.supervisor, directory.sink
    async with answer_at(directory.layout.socket, {"status": lambda: snapshot(supervisor, sink)}):
        yield


@asynccontextmanager
async def answer_at(socket: Path, answers: dict[str, Callable[[], Any]]) -> AsyncIterator[None]:
    """Inside the block, answer questions of these kinds at a socket. Raises OSError."""
    server = await serve(socket, ControlServer(answers).talk)
    try:
        yield
    finally:
        server.close()
        socket.unlink(missing_ok=True)
