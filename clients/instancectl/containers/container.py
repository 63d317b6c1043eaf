"""One container of the running revision: started, watched, started again, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hqpb.v1.instance_pb2 import LifecycleHook
from instancectl.containers.checks import Checker, Readiness, rhythm
from instancectl.containers.container_status import StatusKeeper
from instancectl.containers.restarts import Restarts
from instancectl.containers.workshop import Blueprint, Workshop, drain_s, grace_s
from instancectl.content import PrepareFailed, environment
from instancectl.processes.children import Child, Exit, stop
from instancectl.processes.limits import limit_of
from instancectl.processes.output import Output
from instancectl.state import RunningChild

log = logging.getLogger(__name__)
HOOK_TIMEOUT_S = 30.0


class SupervisedContainer:
    """Keeps one process running until told to stop.

    Args:
        changed: called whenever `status` changes.
    """

    def __init__(self, blueprint: Blueprint, workshop: Workshop, changed: Callable[[], None]) -> None:
        self.blueprint = blueprint
        self.limits = ""
        self._shop = workshop
        self._container = container = blueprint.container
        layout, key = workshop.layout, blueprint.key
        self._directory = layout.revision(key)
        self._output = Output(layout.pipe(key, container.name), layout.log(key.id, container.name), workshop.output)
        self._restarts = Restarts(container.restart_policy, workshop.restarts, workshop.rng)
        self._checker = Checker(blueprint.desired, workshop.commands, self._directory)
        self._says = StatusKeeper(container.name, workshop.clock, changed)
        self.status = self._says.message
        self._environment: dict[str, str] = {}
        self._is_leaving = False
        self._lacks_secrets = False  # the environment, of an adopted process
        self._child: Child | None = None
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""  # of the current run, beyond its exit code

    def __repr__(self) -> str:
        return f"SupervisedContainer({self._container.name}, {self._child})"

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._child.pid if self._child and not self._child.has_ended else None

    def start(self, adopted: Child | None = None, record: RunningChild | None = None) -> None:
        """Begin; `adopted` runs already, as `record` says."""
        if adopted is not None and record is not None:
            self._says.was_restarted(record.restarts)
            self.limits = adopted.grip.description
        started_wall_s = record.started_wall_s if record else 0.0
        self._task = asyncio.create_task(self._run(adopted, started_wall_s), name=f"container {self._container.name}")
        self._task.add_done_callback(self._over)

    def leave(self) -> float:
        """Become not ready; return for how many seconds clients may still connect (0: it was not ready)."""
        wait_s = drain_s(self._container) if self.status.ready else 0.0
        self._is_leaving = True
        self._says.is_ready(False)
        return wait_s

    async def stop(self) -> None:
        """Stop according to the container's policy."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        child = self._child
        if child is not None:
            script = self._pre_stop if self._container.HasField("pre_stop") else None
            how = await stop(child, grace_s(self._container), script)
            self._ended(how, "Stopped")
        self._output.close()

    def _over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("container %s is no longer supervised", self._container.name, exc_info=error)
            self._says.waits("InternalError", f"{type(error).__name__}; see the log of instancectl")

    async def _run(self, adopted: Child | None, started_wall_s: float) -> None:
        clock = self._shop.clock
        child = adopted
        while True:
            began = clock.now()
            how = await self._live(child, started_wall_s)
            child = child if how is None else None
            delay_s = self._restarts.after(how, clock.now() - began)
            if delay_s is None:
                return
            self._says.waits("Backoff", f"{self._trouble or how}; restarting in {delay_s:.1f} s")
            await clock.sleep(delay_s)
            self._says.was_restarted(self._says.restart_count + 1)

    async def _live(self, adopted: Child | None, started_wall_s: float) -> Exit | None:
        """One run, from start to end; None: it could not be started, or the adopted process could not be taken over."""
        self._trouble = ""
        self._child = adopted  # set first: whatever fails, it must not keep running beside another one
        try:
            self._output.open()
            self._environment = await self._full_environment(runs_already=adopted is not None)
            if adopted is None:
                started_wall_s = self._shop.clock.wall_s()
            child = self._child = adopted or self._start(started_wall_s)
        except (OSError, PrepareFailed) as error:
            self._trouble = str(error)
            return None
        self._says.runs(started_wall_s)
        async with self._watched(child, is_new=adopted is None):
            how = await child.wait()
        # A process that daemonizes has ended: restarted, what it left in the background would run twice.
        reason = "OOMKilled" if child.grip.ran_out_of_memory() else how.reason
        child.sweep()
        child.grip.let_go()
        self._ended(how, reason)
        return how

    def _start(self, started_wall_s: float) -> Child:
        """Raises OSError."""
        shop, container = self._shop, self._container
        limit = limit_of(container, self.blueprint.desired.allocation)
        grip = shop.limiter.grip(f"{self.blueprint.key.digest}/{container.name}", limit)
        self.limits = grip.description
        writer = self._output.writer()
        try:
            return shop.children.start(
                container.command,
                cwd=self._directory,
                environment=self._environment,
                output=writer,
                grip=grip,
                record=lambda child: shop.state.started(self._record(child, started_wall_s)),
            )
        finally:
            os.close(writer)

    def _record(self, child: Child, started_wall_s: float) -> RunningChild:
        return RunningChild(
            revision=self.blueprint.key,
            container=self._container.name,
            container_digest=self.blueprint.digest,
            process=child.identity,
            mark=child.mark,
            group=str(child.grip.group or ""),
            limits=child.grip.description,
            grace_s=grace_s(self._container),
            started_wall_s=started_wall_s,
            restarts=self._says.restart_count,
        )

    def _ended(self, how: Exit, reason: str) -> None:
        self._child = None
        self._shop.state.ended(self.blueprint.key, self._container.name)
        self._says.ended(how, reason, self._trouble or str(how))

    async def _full_environment(self, *, runs_already: bool) -> dict[str, str]:
        """Raises SecretMissing, but not for a process that has its secrets: only its hooks and checks lack them."""
        try:
            secrets = await self._shop.secrets.environment(self.blueprint.revision.secret)
            self._lacks_secrets = False
        except PrepareFailed as missing:
            if not runs_already:
                raise
            if not self._lacks_secrets:
                log.warning("hooks and checks of container %s lack a secret: %s", self._container.name, missing)
            secrets, self._lacks_secrets = {}, True
        basis = environment.base(self.blueprint.desired, self.blueprint.key.id, self._directory)
        return environment.for_container(basis, self._container.environment, secrets)

    # --- while it runs ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _watched(self, child: Child, *, is_new: bool) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch(child, is_new), name=f"watch {self._container.name}")
        try:
            yield
        finally:
            if not child.is_stopping:  # else its start hook failed, and what is left of its group has the grace
                task.cancel()
            # `await task` would mistake our own cancellation for the task's: a container being stopped would restart.
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def _watch(self, child: Child, is_new: bool) -> None:
        """Run the start hook, then check readiness for as long as the process lives."""
        if is_new and self._container.HasField("post_start") and not await self._hook(self._container.post_start):
            self._trouble = "the start hook failed"
            await stop(child, grace_s(self._container), None)
        elif self._container.HasField("readiness_check"):
            await self._watch_readiness()
        else:
            self._says.is_ready(not self._is_leaving)

    async def _watch_readiness(self) -> None:
        check = self._container.readiness_check
        timing = rhythm(check)
        readiness = Readiness(timing)
        await self._shop.clock.sleep(timing.initial_delay_s)
        while True:
            if self._lacks_secrets and check.WhichOneof("check") == "exec":
                self._environment = await self._full_environment(runs_already=True)
            if readiness.checked(await self._checker.passes(check, self._environment, timing.timeout_s)):
                self._says.is_ready(readiness.is_ready and not self._is_leaving)
            await self._shop.clock.sleep(timing.period_s)

    async def _pre_stop(self) -> None:
        await self._hook(self._container.pre_stop)

    async def _hook(self, hook: LifecycleHook) -> bool:
        """Run a hook, with its output in the container's; return whether it exited with 0 in time."""
        try:
            writer = self._output.writer()
        except OSError:
            return False
        try:
            outcome = await self._shop.commands.run(
                hook.command,
                cwd=self._directory,
                environment=self._environment,
                timeout_s=hook.timeout.ToTimedelta().total_seconds() or HOOK_TIMEOUT_S,
                output=writer,
            )
        except OSError:
            return False
        finally:
            os.close(writer)
        return outcome.succeeded
