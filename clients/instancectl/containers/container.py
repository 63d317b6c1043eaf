"""One container of the running revision: started, watched, started again, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from google.protobuf import json_format

from hqpb.v1.instance_pb2 import ContainerTerminated, LifecycleHook
from instancectl.background import run_in_thread
from instancectl.containers.checks import Checker
from instancectl.containers.container_checks import ContainerChecks, ContainerFault
from instancectl.containers.container_environment import ContainerEnvironment
from instancectl.containers.container_status import StatusKeeper
from instancectl.containers.restarts import Restarts
from instancectl.containers.workshop import Blueprint, Workshop, drain_s, grace_s, stop_signal
from instancectl.content import PrepareFailed, volumes
from instancectl.content.ownership import give
from instancectl.processes import procfs
from instancectl.processes.child import Child, ProcessExit, stop
from instancectl.processes.commands import CommandResult
from instancectl.processes.confinement import ProcessUser
from instancectl.processes.output import Output
from instancectl.state import EndedContainer, RunningChild

AdoptedChild = tuple[Child, RunningChild]  # a process that runs already, and what was recorded of it

log = logging.getLogger(__name__)
HOOK_TIMEOUT_S = 30.0
_MOST_OUTPUT = 4096  # bytes that are reported of a container


class SupervisedContainer:
    """Keeps one process running until told to stop.

    Attributes:
        is_in_start_hook: its start hook runs.

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
        self._output = Output(layout.log(key.id, container.name), workshop.output, layout.pipe(key, container.name))
        self._restarts = Restarts(container.restart_policy, workshop.restarts, workshop.rng)
        self._says = StatusKeeper(container.name, workshop.clock, changed)
        self.status = self._says.message
        self._environment = ContainerEnvironment(blueprint, workshop)
        checker = Checker(blueprint.desired, workshop.commands, workshop.guard, self._directory)
        self._checks = ContainerChecks(blueprint, workshop, checker, self._environment, self._set_ready)
        self._is_leaving = self.is_in_start_hook = False
        self._child: Child | None = None
        self._task: asyncio.Task[None] | None = None
        self._fault: ContainerFault | None = None  # of the current run, beyond its exit code

    def __repr__(self) -> str:
        return f"SupervisedContainer({self._container.name}, {self._child})"

    @property
    def pid(self) -> int | None:
        """Process id of the running process."""
        return self._child.pid if self._child and not self._child.has_ended else None

    @property
    def was_ready(self) -> bool:
        """Whether it is ready, or was."""
        return self._says.was_ready

    def start(self, adopted: AdoptedChild | EndedContainer | None = None) -> None:
        """Begin. An adopted process that was ready is reported as ready at once, and until its checks fail.

        A container that ended for good under an earlier supervisor is not started again.
        """
        if isinstance(adopted, EndedContainer):
            self._says.set_restart_count(adopted.restarts)
            self._says.set_ended(json_format.ParseDict(adopted.end, ContainerTerminated(), ignore_unknown_fields=True))
            return
        child, record = adopted or (None, None)
        if child is not None and record is not None:
            self._says.set_restart_count(record.restarts)
            self.limits = child.grip.description
            self.status.isolation = record.isolation or f"uid {procfs.uid_of(child.pid)}"
            self._child = child
            self._resume_status(record)
        self._task = asyncio.create_task(self._run(child, record), name=f"container {self._container.name}")
        self._task.add_done_callback(self._over)

    def leave(self) -> float:
        """Become not ready; return for how many seconds clients may still connect (0: it was not ready)."""
        wait_s = drain_s(self._container) if self.status.ready else 0.0
        self._is_leaving = True
        self._says.set_ready(False)
        return wait_s

    async def detach(self) -> None:
        """Watch over it no longer; its process runs on."""
        await self._cancel_task()
        self._output.close()

    async def stop(self) -> None:
        """Stop according to the container's policy."""
        await self._cancel_task()
        child = self._child
        if child is not None:
            how = await self._stop_process(child)
            self._record_end(how, "Stopped")
        self._shop.state.remove_ended(self.blueprint.key, self._container.name)
        self._output.close()

    async def _stop_process(self, child: Child, *, with_script: bool = True) -> ProcessExit:
        script = self._pre_stop if with_script and self._container.HasField("pre_stop") else None
        return await stop(child, grace_s(self._container), script, stop_signal(self._container))

    async def _cancel_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def _over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("container %s is no longer supervised", self._container.name, exc_info=error)
            self._says.set_waiting("InternalError", f"{type(error).__name__}; see the log of instancectl")

    async def _run(self, child: Child | None, record: RunningChild | None) -> None:
        clock = self._shop.clock
        while True:
            began = clock.now()
            self._forget_fault()
            how = await self._live(child, record)
            if how is not None:
                child = record = None
            delay_s = self._restarts.after(how, clock.now() - began, has_fault=self._fault is not None)
            if delay_s is None:
                self._record_final_end()
                return
            self._says.set_waiting(
                "Backoff", f"{self._fault.message if self._fault else how}; restarting in {delay_s:.1f} s"
            )
            await clock.sleep(delay_s)
            self._says.set_restart_count(self._says.restart_count + 1)

    def _forget_fault(self) -> None:
        self._fault = None

    async def _live(self, adopted: Child | None, record: RunningChild | None) -> ProcessExit | None:
        """One run, from start to end; None: it could not be started, or the adopted process could not be taken over."""
        self._child = adopted  # first: if something fails, it must not run on beside a new one
        try:
            self._output.open()
            child = self._child = adopted or await self._start()
        except (OSError, PrepareFailed) as error:
            self._fault = ContainerFault("NotStarted", str(error))
            return None
        if record is not None:
            self._resume_status(record)
        async with self._background_watch(child, record):
            how = await child.wait()
        # A process that daemonizes has ended, too: what it left in the background is killed, or it would run twice.
        reason = self._fault.reason if self._fault else how.reason
        if child.grip.ran_out_of_memory():
            reason = "OOMKilled"
        child.sweep()
        child.grip.let_go()
        self._record_end(how, reason, await self._last_output())
        return how

    async def _last_output(self) -> str:
        """Return the last output, which people ask for first, without secrets."""
        text = self._output.last_lines()
        if not text:
            return ""
        blueprint = self.blueprint
        try:
            masked = await self._shop.secrets.mask(text, blueprint.revision.secret, blueprint.desired.service)
        except PrepareFailed as missing:
            return f"(withheld, because {missing})"
        # Cut only now: a secret that the beginning of the text cuts in two is not recognized. A report has 64 KiB.
        share = min(_MOST_OUTPUT, 8 * _MOST_OUTPUT // len(blueprint.revision.container))
        return masked.encode()[-share:].decode(errors="ignore")

    def _resume_status(self, record: RunningChild) -> None:
        was_ready = record.is_ready or (record.has_begun and not self._container.HasField("readiness_check"))
        self._says.set_running(record.started_wall_s, ready=was_ready and not self._is_leaving)

    async def _start(self) -> Child:
        """Raises OSError, SecretMissing."""
        shop, container = self._shop, self._container
        environment = await self._environment.for_process()
        started_wall_s = shop.clock.wall_s()
        grip = shop.grip(self.blueprint)
        self.limits = grip.description
        confinement = shop.guard.confinement(self.blueprint.desired, container, self._directory)
        if confinement.user is not None:
            await self._give_files(confinement.user, confinement.former_uid)
        self.status.isolation = confinement.description
        writer = self._output.writer(confinement.user)
        try:
            child = shop.children.start(
                container.command,
                confinement=confinement,
                cwd=self._directory,
                environment=environment,
                output=writer,
                grip=grip,
                record=lambda child: shop.state.add_child(self._record(child, started_wall_s)),
            )
        finally:
            os.close(writer)
        self._says.set_running(started_wall_s, ready=False)
        return child

    async def _give_files(self, user: ProcessUser, former_uid: int | None) -> None:
        """Give the files to `user`, if an older agent or another user owned them. Raises OSError."""
        blueprint = self.blueprint
        places = volumes.places(blueprint.revision, blueprint.key, blueprint.desired, self._shop.layout)
        await run_in_thread(lambda _: give([self._directory, *places], user, former_uid))

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
            has_begun=not self._container.HasField("post_start"),
            is_up=not self._container.HasField("startup_check"),
            stop_signal=stop_signal(self._container).name,
            isolation=self.status.isolation,
        )

    def _record_final_end(self) -> None:
        """Record that it is not to be started again, by a later supervisor either."""
        self._shop.state.add_ended(
            EndedContainer(
                revision=self.blueprint.key,
                container=self._container.name,
                container_digest=self.blueprint.digest,
                boot_id=procfs.boot_id(),
                restarts=self._says.restart_count,
                end=json_format.MessageToDict(self.status.last_termination),
            )
        )

    def _record_end(self, how: ProcessExit, reason: str, output: str = "") -> None:
        self._child = None
        self._shop.state.remove_child(self.blueprint.key, self._container.name)
        self._says.set_terminated(how, reason, f"{self._fault.message}; it {how}" if self._fault else str(how), output)

    def _set_ready(self, ready: bool) -> None:
        self._says.set_ready(ready and not self._is_leaving)

    # --- while it runs ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _background_watch(self, child: Child, record: RunningChild | None) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch(child, record), name=f"watch {self._container.name}")
        try:
            yield
        finally:
            if not child.is_stopping:  # else the watch stops it, and the rest of its group has the grace
                task.cancel()
            # `await task` would mistake our own cancellation for the task's: a container being stopped would restart.
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def _watch(self, child: Child, record: RunningChild | None) -> None:
        """Run the start hook, unless that was done, then the checks; stop it if one of them says so."""
        has_hook = self._container.HasField("post_start") and (record is None or not record.has_begun)
        self._fault = await self._run_start_hook() if has_hook else None
        if self._fault is None:
            self._shop.state.record_begun(self.blueprint.key, self._container.name)
            self._fault = await self._checks.watch(child, record)
        if self._fault is not None:
            log.warning("container %s is stopped: %s", self._container.name, self._fault.message)
            self._set_ready(False)
            await self._stop_process(child, with_script=not self._fault.reason.startswith("StartHook"))

    async def _run_start_hook(self) -> ContainerFault | None:
        self.is_in_start_hook = True
        outcome = await self._hook(self._container.post_start, "start hook")
        self.is_in_start_hook = False  # stays True if the hook was cut off
        if outcome is None or not outcome.succeeded:
            if outcome is not None and outcome.timed_out:
                return ContainerFault("StartHookTimedOut", "the start hook timed out")
            return ContainerFault("StartHookFailed", "the start hook failed")
        return None

    async def _pre_stop(self) -> None:
        await self._hook(self._container.pre_stop, "stop hook")

    async def _hook(self, hook: LifecycleHook, what: str) -> CommandResult | None:
        """Run a hook, with its output in the container's; None: it could not be run."""
        environment = await self._environment.for_scripts()
        try:
            writer = self._output.writer()
        except OSError:
            return None
        try:
            return await self._shop.commands.run(
                hook.command,
                cwd=self._directory,
                environment=environment,
                timeout_s=hook.timeout.ToTimedelta().total_seconds() or HOOK_TIMEOUT_S,
                output=writer,
                confinement=self._shop.guard.confinement(self.blueprint.desired, None, self._directory),
                grip=self._shop.grip(self.blueprint, what),
            )
        except (OSError, PrepareFailed):
            return None
        finally:
            os.close(writer)
