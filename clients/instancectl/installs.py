"""How far each revision is on its way to being installed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from hqclient.backoff import backoff_limit_s
from instancectl.clock import InstancectlClock
from instancectl.content import PrepareFailed
from instancectl.content.fetch import FETCH_FAILED
from instancectl.content.prepare import Preparer
from instancectl.reports import conditions
from instancectl.reports.conditions import ConditionVerdict
from instancectl.state import StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey

_FIRST_RETRY_S = 1.0
_MAX_RETRY_S = 60.0

log = logging.getLogger(__name__)


@dataclass
class Install:
    """One revision. `task`: preparing it, or resting until it is tried again."""

    verdict: ConditionVerdict = conditions.PENDING
    task: asyncio.Task[None] | None = None
    failures: int = 0
    last_failure: str = ""
    is_resting: bool = False
    is_leaving: bool = False


class Installs:
    """Prepares revisions side by side; failed ones are retried after a while."""

    def __init__(
        self, preparer: Preparer, state: StateFile, clock: InstancectlClock, changed: Callable[[], None]
    ) -> None:
        self._preparer = preparer
        self._state = state
        self._clock = clock
        self._changed = changed
        self._all: dict[RevisionContentKey, Install] = {
            key: Install(conditions.INSTALLED) for key in state.state.installed if preparer.has(key)
        }

    @property
    def installed(self) -> frozenset[RevisionContentKey]:
        return self._those(lambda install: install.verdict.holds is True)

    @property
    def preparing(self) -> frozenset[RevisionContentKey]:
        return self._those(lambda install: install.task is not None and not install.is_resting)

    @property
    def resting(self) -> frozenset[RevisionContentKey]:
        """Failed and not due for a retry, or being removed: not to be prepared now."""
        return self._those(lambda install: install.is_resting or install.is_leaving)

    @property
    def present(self) -> frozenset[RevisionContentKey]:
        return frozenset(self._all)

    def verdict(self, key: RevisionContentKey) -> ConditionVerdict | None:
        """None: nothing of it is on the disk."""
        install = self._all.get(key)
        return install.verdict if install else None

    def begin(self, key: RevisionContentKey, desired: Desired) -> None:
        """Prepare a revision."""
        install = self._all.setdefault(key, Install())
        install.is_resting = False
        if not install.failures:
            install.verdict = conditions.PREPARING
        install.task = asyncio.create_task(self._prepare(key, install, desired), name=f"prepare {key}")
        self._changed()

    async def cancel(self, keys: Iterable[RevisionContentKey]) -> None:
        """Give up preparing; return when nothing is written any more."""
        installs = [install for key in keys if (install := self._all.get(key)) and install.task]
        for install in installs:
            if install.verdict is conditions.RUNNING_SCRIPTS:
                install.verdict = conditions.HOOK_CANCELLED
        tasks = [install.task for install in installs if install.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def remove(self, key: RevisionContentKey, desired: Desired) -> None:
        """Remove a revision from the disk."""
        if install := self._all.get(key):
            install.is_leaving, install.verdict = True, conditions.REMOVING
        await self.cancel([key])
        self._state.remove_installed(key)
        await self._preparer.remove(key, desired)
        self._all.pop(key, None)

    def forget(self) -> None:
        """Forget all revisions: everything was removed."""
        self._all.clear()

    async def close(self) -> None:
        await self.cancel(self._all)

    async def wait(self) -> None:
        """Until nothing is being prepared."""
        while preparing := [self._all[key].task for key in self.preparing]:
            await asyncio.wait([task for task in preparing if task])

    async def _prepare(self, key: RevisionContentKey, install: Install, desired: Desired) -> None:
        try:
            contents = await self._preparer.prepare(
                key, desired.by_key[key], desired, lambda stage: self._set_stage(install, stage)
            )
            self._state.add_installed(key, contents)
        except PrepareFailed as failure:
            await self._rest(key, install, failure)
            return
        except OSError as error:  # e.g. the disk is full, only now that everything is fetched
            words = f"cannot record that it is installed: {error.strerror or error}"
            await self._rest(key, install, PrepareFailed("PrepareFailed", words))
            return
        except asyncio.CancelledError:
            install.task = None
            raise
        except Exception as error:
            log.exception("preparing %s failed unexpectedly", key)
            await self._rest(key, install, PrepareFailed("InternalError", f"{type(error).__name__}; see the log"))
            return
        install.verdict, install.failures, install.task = conditions.INSTALLED, 0, None
        log.info("revision %s is installed", key)
        self._changed()

    def _set_stage(self, install: Install, stage: ConditionVerdict) -> None:
        """After a failure, keep its message: it says more than the stage of the retry."""
        if not install.failures:
            install.verdict = stage
            self._changed()

    async def _rest(self, key: RevisionContentKey, install: Install, failure: PrepareFailed) -> None:
        install.failures += 1
        install.is_resting = True
        if failure.message != install.last_failure:
            log.warning("revision %s is not installed: %s", key, failure.message)
        install.last_failure = failure.message
        delay_s = backoff_limit_s(install.failures, _FIRST_RETRY_S, _MAX_RETRY_S)
        install.verdict = ConditionVerdict(False, failure.reason, failure.message)
        if failure.reason == FETCH_FAILED:
            next_try = datetime.fromtimestamp(self._clock.wall_s() + delay_s, UTC)
            install.verdict = conditions.retry_verdict(failure.message, next_try)
        self._changed()
        try:
            await self._clock.sleep(delay_s)
        finally:
            install.is_resting, install.task = False, None
        self._changed()

    def _those(self, which: Callable[[Install], bool]) -> frozenset[RevisionContentKey]:
        return frozenset(key for key, install in self._all.items() if which(install))
