"""The agent of a node: supervises what HQ places on the node, and contains the node's host agent.

It is made to be killed: what it does is on disk before it is done. So leaving (SIGTERM) is little more than dying, and
the next agent adopts what runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Any

from instancectl.assembly import SharedTools, answer_at, open_reaper
from instancectl.clock import MachineClock
from instancectl.files import hold_lock
from instancectl.hostagent.agent import HostAgent
from instancectl.layout import Layout
from instancectl.node.absences import AbsenceGate
from instancectl.node.guard import guard_of
from instancectl.node.hosted import HostedInstance
from instancectl.node.status import snapshot
from instancectl.route import route_of
from instancectl.settings import NodeSettings, node_socket_of

_LAST_WORDS_S = 2.0
_TRAVERSED = 0o711  # instances run as other users

log = logging.getLogger(__name__)


class NodeAgent:
    """Supervises the instances of one node.

    Attributes:
        instances: those of the node, by id.
        absences: which of them HQ does not know any more.
    """

    def __init__(self, settings: NodeSettings, host_agent: HostAgent, tools: SharedTools) -> None:
        self.instances: dict[str, HostedInstance] = {}
        self._settings = settings
        self._host_agent = host_agent
        self.absences = AbsenceGate(
            settings.own_directory / "absences.json", lambda: self.instances, lambda: host_agent.instances.ids
        )
        self._tools = replace(tools, absences=self.absences)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._ends = False
        host_agent.instances.subscribe(self._wake.set)

    @property
    def trouble(self) -> str:
        """Why HQ cannot be watched; empty: it can."""
        return self._host_agent.instances.trouble

    def status(self) -> dict[str, Any]:
        """For `instancectl status`."""
        return snapshot(self._settings.run.node, self.trouble, self.absences.held, self.instances)

    def confirm(self) -> dict[str, Any]:
        """Let the instances end that HQ does not know any more; say which waited."""
        held = self.absences.held
        log.warning("confirmed: %s may end", ", ".join(held) or "nothing that waits")
        self.absences.confirm()
        self.look_again()
        return {"confirmed": held}

    def end(self) -> None:
        """Return from `run`."""
        log.info(
            "stopping: %s", "ending all instances" if self._settings.stops_at_end else "instances are left running"
        )
        self._ends = True
        self._wake.set()

    def look_again(self) -> None:
        """Read again what is wanted of each instance."""
        for instance in self.instances.values():
            instance.look_again()

    async def run(self) -> None:
        """Supervise until `end`. Raises what `HostAgent.run` does."""
        closing = asyncio.Event()
        serving = asyncio.create_task(self._host_agent.run(closing), name="host agent")
        serving.add_done_callback(lambda _: self._wake.set())
        for instance_id in self._ids_on_disk():  # at once: HQ may be away
            self._begin(instance_id)
        while not (self._ends or serving.done()):
            self._update()
            await self._wake.wait()
            self._wake.clear()
        if not serving.done():
            await self._leave()
        closing.set()
        await serving

    def _ids_on_disk(self) -> list[str]:
        root = self._settings.run.directory
        return sorted(path.name for path in root.iterdir() if Layout.at(path).last_good.exists())

    def _update(self) -> None:
        """Begin new instances, drop ended ones. Those that HQ no longer lists end by themselves: they ask HQ."""
        for instance_id in [name for name, task in self._tasks.items() if task.done()]:
            del self._tasks[instance_id], self.instances[instance_id]
        ids = self._host_agent.instances.ids
        if ids is None:
            return
        for instance_id in sorted(ids - self.instances.keys()):
            self._begin(instance_id)
        for instance_id in self.instances.keys() - ids:
            if not self.instances[instance_id].is_known:
                self._tasks[instance_id].cancel()

    def _begin(self, instance_id: str) -> None:
        instance = self.instances[instance_id] = HostedInstance(self._settings.for_instance(instance_id), self._tools)
        task = self._tasks[instance_id] = asyncio.create_task(instance.run(), name=f"instance {instance_id}")
        task.add_done_callback(lambda _: self._wake.set())

    async def _leave(self) -> None:
        """End the instances; or, if they are to run on, only report the last news: this process ends next."""
        instances = list(self.instances.values())
        if self._settings.stops_at_end:
            for instance in instances:
                instance.end()
            if self._tasks:
                await asyncio.wait(self._tasks.values())
        elif instances:
            await asyncio.wait([asyncio.create_task(each.flush()) for each in instances], timeout=_LAST_WORDS_S)


async def run_node(settings: NodeSettings) -> None:
    """Supervise until SIGTERM. If instances are left running, the process ends here, with 0.

    Raises:
        Occupied: another agent has the node or the directory.
        BadCredentials, OSError: it cannot begin.
    """
    run, own = settings.run, settings.own_directory
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.socket.parent.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        stack.enter_context(
            hold_lock(settings.socket.with_name(f"node-{run.node}.lock"), f"node {run.node} has an agent")
        )
        stack.enter_context(hold_lock(own / "lock", f"{run.directory} is in use by an agent"))
        rng = random.Random()
        host_agent = HostAgent(run.node, run.servers, run.credentials, settings.socket, settings.speakers)
        route = route_of(settings.socket, (), run.credentials, rng)
        stack.push_async_callback(route.close)
        run.directory.chmod(_TRAVERSED)
        tools = SharedTools(MachineClock(), rng, stack.enter_context(open_reaper()), route, guard_of(settings))
        agent = NodeAgent(settings, host_agent, tools)
        stack.enter_context(_signals(agent))
        await stack.enter_async_context(
            answer_at(node_socket_of(run.directory), {"status": agent.status, "confirm": agent.confirm})
        )
        await agent.run()
        if not settings.stops_at_end:
            # Any clean-up would stop what runs, or be of no use: end here, as a killed agent does.
            logging.shutdown()
            os._exit(0)


@contextmanager
def _signals(agent: NodeAgent) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGTERM: agent.end, signal.SIGINT: agent.end, signal.SIGHUP: agent.look_again}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
