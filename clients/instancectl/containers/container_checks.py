"""Checks of a running container: first whether it is up, then whether it is ready, and whether it hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from hqpb.v1.instance_pb2 import ReadinessCheck
from instancectl.containers.checks import Checker, Readiness, rhythm
from instancectl.containers.container_environment import ContainerEnvironment
from instancectl.containers.workshop import Blueprint, Workshop
from instancectl.processes import procfs
from instancectl.processes.child import Child
from instancectl.state import RunningChild

_SPREAD_S = 1.0
_STARTUP, _READINESS, _LIVENESS = "startup check", "readiness check", "liveness check"


class ContainerFault(NamedTuple):
    """Why a container is stopped: a word for programs and a sentence for people."""

    reason: str
    message: str


class ContainerChecks:
    """The checks of one container.

    Args:
        set_ready: called with what the readiness check found.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        workshop: Workshop,
        checker: Checker,
        environment: ContainerEnvironment,
        set_ready: Callable[[bool], None],
    ) -> None:
        self._blueprint = blueprint
        self._container = blueprint.container
        self._key = blueprint.key
        self._shop = workshop
        self._checker = checker
        self._environment = environment
        self._set_ready = set_ready

    async def watch(self, child: Child, record: RunningChild | None) -> ContainerFault | None:
        """Check for as long as the process lives; return why it has to be stopped. None: no check can find that out.

        Args:
            record: what an earlier supervisor found out.
        """
        container = self._container
        if container.HasField("startup_check") and not (record and record.is_up):
            check = container.startup_check
            if (failed := await self._count_failures(_STARTUP, check, child, record)) > 0:
                return ContainerFault("StartupCheckFailed", f"its startup check failed {failed} times in a row")
            self._shop.state.record_up(self._key, container.name)
            record = None  # its failures were those of the startup check
        if not container.HasField("liveness_check"):
            await self._follow_readiness(child, record)
            return None
        async with asyncio.TaskGroup() as group:
            readiness = group.create_task(self._follow_readiness(child, record))
            failed = await self._count_failures(_LIVENESS, container.liveness_check, child, record)
            readiness.cancel()
        return ContainerFault("LivenessCheckFailed", f"its liveness check failed {failed} times in a row")

    async def _count_failures(self, what: str, check: ReadinessCheck, child: Child, record: RunningChild | None) -> int:
        """Return how many checks in a row failed, when that is too many; 0 at the first success of a startup check."""
        failed = record.strikes if record else 0

        def count(passed: bool) -> bool:
            nonlocal failed
            failed = 0 if passed else failed + 1
            self._shop.state.record_strikes(self._key, self._container.name, failed)
            return failed >= rhythm(check).failures or (passed and what == _STARTUP)

        await self._wait_for_initial_delay(check, child)
        await self._repeat(what, check, record, count)
        return failed

    async def _follow_readiness(self, child: Child, record: RunningChild | None) -> None:
        if not self._container.HasField("readiness_check"):
            self._set_ready(True)
            return
        check = self._container.readiness_check
        readiness = Readiness(rhythm(check))
        if record is not None:
            readiness = Readiness(rhythm(check), is_ready=record.is_ready, failures=record.failed_checks)
        if not readiness.is_ready:
            await self._wait_for_initial_delay(check, child)

        def take(passed: bool) -> bool:
            if readiness.record_result(passed):
                self._set_ready(readiness.is_ready)
            name, failures = self._container.name, readiness.failures
            self._shop.state.record_check(self._key, name, is_ready=readiness.is_ready, failed_checks=failures)
            return False

        await self._repeat(_READINESS, check, record, take)

    async def _wait_for_initial_delay(self, check: ReadinessCheck, child: Child) -> None:
        """Wait for the delay, which counts from the start of the process, whichever supervisor started it."""
        await self._shop.clock.sleep(max(0.0, rhythm(check).initial_delay_s - procfs.age_s(child.identity)))

    async def _repeat(
        self, what: str, check: ReadinessCheck, record: RunningChild | None, is_enough: Callable[[bool], bool]
    ) -> None:
        """Check once a period until `is_enough` of the result."""
        timing, limits = rhythm(check), partial(self._shop.grip, self._blueprint, what)
        if record is not None:  # a new agent adopts all instances of a node at once
            await self._shop.clock.sleep(self._shop.rng.uniform(0.0, min(_SPREAD_S, timing.period_s)))
        while True:
            environment = await self._environment.for_scripts() if check.WhichOneof("check") == "exec" else {}
            if is_enough(await self._checker.passes(check, environment, timing.timeout_s, limits)):
                return
            await self._shop.clock.sleep(timing.period_s)
