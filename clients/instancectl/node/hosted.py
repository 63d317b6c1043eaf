"""One instance of the node: supervised until it is gone. Its failures are retried here, and reach no other instance."""

from __future__ import annotations

import logging
import shutil
from contextlib import ExitStack
from functools import partial

from hqclient.backoff import backoff_limit_s
from instancectl.assembly import SharedTools, SupervisedDirectory, answer_status, open_directory
from instancectl.background import start_in_own_thread
from instancectl.files import Occupied
from instancectl.housekeeping import WrongDirectory
from instancectl.log_lines import name_instance
from instancectl.settings import RunSettings
from instancectl.state import StateUnreadable

_FIRST_RETRY_S, _MAX_RETRY_S = 1.0, 60.0
_FLUSH_S = 1.0

log = logging.getLogger(__name__)


class HostedInstance:
    """One instance, with a directory of its own.

    Attributes:
        trouble: why it is not supervised at present; empty: it is.
        directory: its supervisor; None while there is trouble.
    """

    def __init__(self, settings: RunSettings, tools: SharedTools) -> None:
        self.trouble = "not begun yet"
        self.directory: SupervisedDirectory | None = None
        self._settings = settings
        self._tools = tools
        self._ends = False

    def __repr__(self) -> str:
        return f"HostedInstance({self._settings.instance_id}, {self.trouble or 'supervised'})"

    @property
    def is_known(self) -> bool:
        """Whether HQ has said at some time what is wanted of it."""
        return self.directory is not None and self.directory.supervisor.wishes.last_good is not None

    async def run(self) -> None:
        """Supervise until the instance is gone and its files are removed, or until `end`."""
        name_instance(self._settings.instance_id)
        failures = 0
        while not self._ends:
            try:
                await self._supervise()
            except (Occupied, StateUnreadable, WrongDirectory, OSError) as error:
                self._note_trouble(str(error))
            except Exception as error:
                log.exception("not supervised")
                self._note_trouble(f"{type(error).__name__}; see the log")
            else:
                return
            failures += 1
            await self._tools.clock.sleep(backoff_limit_s(failures, _FIRST_RETRY_S, _MAX_RETRY_S))

    def end(self) -> None:
        """Stop what runs, then return from `run`."""
        self._ends = True
        if self.directory is not None:
            self.directory.supervisor.end()

    def look_again(self) -> None:
        """Read again what is wanted."""
        if self.directory is not None:
            self.directory.supervisor.wishes.look_again()

    async def flush(self) -> None:
        """Report all news now."""
        if self.directory is not None:
            await self.directory.sink.flush(_FLUSH_S)

    async def _supervise(self) -> None:
        with ExitStack() as stack:
            directory = stack.enter_context(open_directory(self._settings, self._tools))
            directory.layout.open_to_users()
            self.directory, self.trouble = directory, ""
            stack.callback(self._close)
            async with answer_status(directory):
                await directory.supervisor.run(directory.sink)
            gone = directory.supervisor.wishes.gone
            if gone is not None and not gone.moved:  # what moved leaves its persistent volumes here
                await start_in_own_thread(partial(shutil.rmtree, directory.layout.root, ignore_errors=True))

    def _close(self) -> None:
        self.directory = None

    def _note_trouble(self, message: str) -> None:
        if message != self.trouble:
            log.warning("not supervised: %s", message)
        self.trouble = message
