"""The simulated agents: what one says of its instance as time goes by. No I/O."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb

_INSTALL_S = (0.5, 1.2)
_START_S = (0.4, 1.0)
_AGAIN_S = 2.0  # after its process has ended, it is started again
_LAST_WORDS = "listening on :8080\nfatal: cannot open /etc/search/index: no such file"


class Life:
    """One revision on a node: it takes a while to be installed, and another to be ready.

    Attributes:
        incarnation: as BeginReporting gave it; 0: it has to begin.
        ends_after_s: its process ends so long after each start, 0 at once; None: it runs.
    """

    def __init__(self, revision: model.InstanceRevision, installed_at: float) -> None:
        self.id, self.ends_after_s = revision.id, _ends_after_s(revision)
        self.incarnation = 0
        self._containers = [one.name for one in revision.container]
        self._installed_at = installed_at
        self._ready_at: float | None = None
        self._sequence = 0

    def want(self, *, ready: bool, now: float, start_s: float) -> None:
        """Follow what the spec says. Saying the same twice changes nothing."""
        if not ready:
            self._ready_at = None
        elif self._ready_at is None:
            self._ready_at = max(now, self._installed_at) + start_s

    def began(self, incarnation: int) -> None:
        """Note that HQ takes our reports, under this incarnation."""
        self.incarnation, self._sequence = incarnation, 0

    def status(self, now: float) -> model.RevisionStatus:
        """The next report."""
        self._sequence += 1
        made = model.RevisionStatus(id=self.id, incarnation=self.incarnation, sequence=self._sequence)
        is_installed = now >= self._installed_at
        has_started = self._ready_at is not None and now >= self._ready_at
        restarts, runs = self._restarts(now)
        is_ready = has_started and runs
        made.installed.status, made.ready.status = _holds(is_installed), _holds(is_ready)
        made.ready.reason = "Running" if is_ready else "Stopped" if self._ready_at is None else "Starting"
        if has_started and not runs:
            made.ready.reason, made.ready.message = "Exited", "its process ended with exit code 1"
        for name in self._containers if restarts or (has_started and not runs) else ():
            container = made.container.add(name=name, ready=is_ready, restart_count=restarts)
            container.last_termination.exit_code, container.last_termination.output = 1, _LAST_WORDS
        return made

    def next_change_at(self, now: float) -> float | None:
        """When there will be news by itself."""
        times = [self._installed_at, self._ready_at]
        if self._ready_at is not None and self.ends_after_s is not None:
            round_s = self.ends_after_s + _AGAIN_S
            began_at = self._ready_at + self._restarts(now)[0] * round_s
            times += [began_at + self.ends_after_s, began_at + round_s]
        return min((at for at in times if at is not None and at > now), default=None)

    def _restarts(self, now: float) -> tuple[int, bool]:
        """How often it was started again, and whether it runs now."""
        if self._ready_at is None or self.ends_after_s is None or now < self._ready_at:
            return 0, True
        restarts, age_s = divmod(now - self._ready_at, self.ends_after_s + _AGAIN_S)
        return int(restarts), age_s < self.ends_after_s


class Agent:
    """The agent of one instance."""

    def __init__(self, instance_id: str, node: str, rng: random.Random) -> None:
        self.instance_id, self.node = instance_id, node
        self.uid = 0
        self._rng = rng
        self._lives: dict[str, Life] = {}

    def told(self, spec: model.InstanceSpec, now: float) -> None:
        """Follow the revisions that shall be there, as the agent learns from HQ."""
        wanted = {revision.id: revision for revision in spec.revision}
        self._lives = {id_: life for id_, life in self._lives.items() if id_ in wanted}
        for id_, revision in wanted.items():
            life = self._lives.setdefault(id_, Life(revision, now + self._rng.uniform(*_INSTALL_S)))
            is_ready = revision.target == model.REVISION_TARGET_READY
            life.want(ready=is_ready, now=now, start_s=self._rng.uniform(*_START_S))

    def strangers(self) -> list[Life]:
        """The revisions without an incarnation: they have to begin reporting first."""
        return [life for life in self._lives.values() if not life.incarnation]

    def reports(self, now: float, *, unsettled: bool) -> Iterator[tuple[Life, pb.ReportStatusRequest]]:
        """What it says of each revision that has begun."""
        for life in self._lives.values():
            if life.incarnation:
                made = pb.ReportStatusRequest(instance_id=self.instance_id, uid=self.uid, node=self.node)
                made.revision.CopyFrom(life.status(now))
                made.unsettled = unsettled
                yield life, made

    def next_change_at(self, now: float) -> float | None:
        """When any of its revisions will have news by itself."""
        return earliest(life.next_change_at(now) for life in self._lives.values())


def _ends_after_s(revision: model.InstanceRevision) -> float | None:
    """When its process ends, as its commands say: `false` at once, `timeout 8 serve` 8 s after each start."""
    for container in revision.container:
        match list(container.command):
            case ["false"]:
                return 0.0
            case ["timeout", seconds, *_]:
                return float(seconds)
    return None


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of those that are known; None: none is."""
    return min((at for at in times if at is not None), default=None)


def _holds(value: bool) -> model.ConditionStatus:
    return model.CONDITION_STATUS_TRUE if value else model.CONDITION_STATUS_FALSE
