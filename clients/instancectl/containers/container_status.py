"""The reported state of a container: its ContainerStatus, kept up to date."""

from __future__ import annotations

from collections.abc import Callable

from hqpb.v1.instance_pb2 import ContainerState, ContainerStatus, ContainerTerminated
from instancectl.clock import InstancectlClock, timestamp
from instancectl.processes.child import ProcessExit


class StatusKeeper:
    """Keeps the ContainerStatus of a container, which is waiting at first.

    Attributes:
        was_ready: it is ready, or was.

    Args:
        changed: called after every change.
    """

    def __init__(self, name: str, clock: InstancectlClock, changed: Callable[[], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._started_wall_s = 0.0
        self.was_ready = False
        self.message = ContainerStatus(name=name)
        self.message.state.waiting.reason = "Starting"

    @property
    def restart_count(self) -> int:
        return self.message.restart_count

    def set_restart_count(self, times: int) -> None:
        self.message.restart_count = times

    def set_waiting(self, reason: str, text: str) -> None:
        """Show it as not running, for a reason in CamelCase."""
        self.message.ready = False
        self.message.state.Clear()
        self.message.state.waiting.reason, self.message.state.waiting.message = reason, text
        self._changed()

    def set_running(self, since_wall_s: float, *, ready: bool) -> None:
        """Show it as running."""
        self._started_wall_s = since_wall_s
        self.was_ready |= ready
        self.message.ready = ready
        self.message.state.Clear()
        self.message.state.running.start_time.CopyFrom(timestamp(since_wall_s))
        self._changed()

    def set_ready(self, ready: bool) -> None:
        self.was_ready |= ready
        if self.message.ready is not ready:
            self.message.ready = ready
            self._changed()

    def set_terminated(self, how: ProcessExit, reason: str, text: str, output: str = "") -> None:
        """Show it as ended, and keep that as the last termination."""
        end = ContainerTerminated(
            exit_code=how.code or 0,
            signal=how.signal or 0,
            reason=reason,
            message=text,
            start_time=timestamp(self._started_wall_s),
            finish_time=timestamp(self._clock.wall_s()),
            output=output,
        )
        self.set_ended(end)

    def set_ended(self, end: ContainerTerminated) -> None:
        """The same, with an end that was recorded."""
        self.message.ready = False
        self.message.state.CopyFrom(ContainerState(terminated=end))
        self.message.last_termination.CopyFrom(end)
        self.message.state.terminated.ClearField("output")  # once is enough
        self._changed()
