"""The one place where the objects of a supervisor are wired together."""

from __future__ import annotations

import asyncio
import logging
import random
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from instancectl.clock import InstancectlClock, MachineClock
from instancectl.containers.workshop import Workshop
from instancectl.content.fetch import ContentStore, Sources
from instancectl.content.prepare import Preparer
from instancectl.content.secrets import CommandProvider, DirectoryProvider, SecretProvider, SecretValues
from instancectl.control_socket import ControlServer, serve
from instancectl.files import hold_lock
from instancectl.layout import Layout
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.limits import best_limiter
from instancectl.reports.reporter import StatusReporter
from instancectl.reports.sink import NoSink, StatusSink
from instancectl.route import HqRoute, route_of
from instancectl.settings import Manner, ProviderSpec, RunSettings
from instancectl.state import StateFile
from instancectl.status import snapshot
from instancectl.supervisor import Supervisor
from instancectl.wanted import desired as wishes
from instancectl.wanted.desired import Desired
from instancectl.wanted.hq_source import HqSource
from instancectl.wanted.source import DesiredSource, FileSource

log = logging.getLogger(__name__)


async def run(settings: RunSettings) -> bool:
    """Supervise until told to end; with `once`, whether everything wanted is installed.

    Raises:
        Occupied, StateUnreadable, WrongDirectory: the directory cannot be used; str() says what to do.
        OSError: a file operation on it failed.
    """
    layout = Layout.at(settings.directory, settings.store)
    layout.make()
    with hold_lock(layout.lock):
        return await _run_locked(settings, layout)


async def _run_locked(settings: RunSettings, layout: Layout) -> bool:
    clock, rng = MachineClock(), random.Random()
    async with AsyncExitStack() as stack:
        route = None
        if settings.servers or settings.host_agent:
            route = route_of(settings.host_agent, settings.servers, settings.credentials, rng)
            stack.push_async_callback(route.close)
        last_good = wishes.load(layout.last_good)
        workshop = _workshop(settings, layout, clock, rng)
        stack.enter_context(_open_children(workshop.children))
        store = ContentStore(layout.store, Sources(settings.file_root, settings.fetch_from, settings.fetch_bytes))
        preparer = Preparer(layout, store, workshop.secrets, workshop.commands, workshop.output)
        manner = Manner(starts=not settings.once, stops_when_fenced=settings.when_fenced == "stop")
        source = _source(settings, route, last_good, clock, rng)
        supervisor = Supervisor(source, last_good, workshop, preparer, manner)
        sink = _sink(route, supervisor, clock, rng)
        if settings.once:
            return await supervisor.once(sink)
        stack.enter_context(_signals(supervisor))
        await stack.enter_async_context(_answering(layout.socket, supervisor, sink))
        await supervisor.run(sink)
        return True


def _workshop(settings: RunSettings, layout: Layout, clock: InstancectlClock, rng: random.Random) -> Workshop:
    state = StateFile(layout.state)
    children = Children(state.state.owner)
    commands = Commands(children)
    providers = {spec.name: _provider(spec, commands) for spec in settings.providers}
    return Workshop(
        layout=layout,
        state=state,
        children=children,
        commands=commands,
        secrets=SecretValues(providers),
        limiter=best_limiter(f"{settings.instance_id}@{layout.root}"),
        restarts=settings.restarts,
        output=settings.output,
        clock=clock,
        rng=rng,
    )


def _provider(spec: ProviderSpec, commands: Commands) -> SecretProvider:
    if spec.kind == "dir":
        return DirectoryProvider(Path(spec.place).absolute())
    return CommandProvider(shlex.split(spec.place), commands)


def _source(
    settings: RunSettings, route: HqRoute | None, last_good: Desired | None, clock: InstancectlClock, rng: random.Random
) -> DesiredSource:
    if settings.file is not None:
        return FileSource(settings.file, settings.node, clock)
    assert route is not None, "checked by the command line"
    return HqSource(route, settings.instance_id, settings.node, last_good, clock, rng)


def _sink(route: HqRoute | None, supervisor: Supervisor, clock: InstancectlClock, rng: random.Random) -> StatusSink:
    return NoSink() if route is None else StatusReporter(route, clock, rng, supervisor.on_reporting_stopped)


@contextmanager
def _open_children(children: Children) -> Iterator[None]:
    children.open()
    try:
        yield
    finally:
        children.close()


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
async def _answering(socket: Path, supervisor: Supervisor, sink: StatusSink) -> AsyncIterator[None]:
    server = await serve(socket, ControlServer({"status": lambda: snapshot(supervisor, sink)}).talk)
    try:
        yield
    finally:
        server.close()
        socket.unlink(missing_ok=True)
