"""Hosts, agents and HQ as a model in steps of five seconds: what a roll-out is judged by, without any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from nanny.actions.progress_clock import Meter
from nanny.rollout import moves, plan
from nanny.rollout.judge import is_calm
from nanny.rollout.policy import Policy
from nanny.rollout.views import NOT_SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in

TICK_S: Final = 5.0
REPORT_S: Final = 20.0
LIVENESS_S: Final = 600.0
FOREVER_S: Final = 3 * 3600.0
OLD, NEW = "old", "new"


@dataclass(frozen=True)
class Looks:
    """How a revision looks to its agent."""

    ready: bool
    restarts: int = 0


Program = Callable[[int, float], Looks]
"""What becomes of a revision on the instance of this number, so many seconds after it was switched to."""


def good(_number: int, age_s: float) -> Looks:
    return Looks(age_s >= 10.0)


def never(_number: int, _age_s: float) -> Looks:
    return Looks(ready=False)


@dataclass
class Host:
    """One instance on its host, and what HQ shows of it.

    Attributes:
        wanted: what HQ wants READY there; `runs`: what the agent runs, since `since_s`.
        seen: its agent has seen what is wanted.
        dead: it says nothing more.
        heard_s: when HQ heard it last.
        shown: what HQ shows as ready; None: nothing. `ready_since_s`: since when.
    """

    number: int
    wanted: str = OLD
    runs: str = OLD
    since_s: float = -1e6
    seen: bool = True
    dead: bool = False
    heard_s: float = 0.0
    shown: str | None = OLD
    ready_since_s: float = -1e6
    restarts: int = 0
    held: bool = False


@dataclass
class World:
    """A service in three locations, and what happens to it.

    Attributes:
        programs: what the two revisions do.
        kills_after_s: the new revision takes its host with it, so long after it was started.
        events: what happens at a time, besides.
        away: locations that do not answer.
        own: instances that are down for another reason than the roll-out: they are no fault of it.
    """

    size: int
    programs: dict[str, Program] = field(default_factory=lambda: {OLD: good, NEW: good})
    kills_after_s: float | None = None
    events: Mapping[float, Callable[[World], None]] = field(default_factory=dict)
    now_s: float = 0.0
    away: set[str] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    lowest: int = 10**9
    hosts: list[Host] = field(init=False)

    def __post_init__(self) -> None:
        self.hosts = [Host(number) for number in range(self.size)]

    def key(self, number: int) -> Key:
        return "abc"[number % 3], f"{number:03d}"

    def host(self, key: Key) -> Host:
        return self.hosts[int(key[1])]

    def tick(self) -> None:
        self.now_s += TICK_S
        if (event := self.events.get(self.now_s)) is not None:
            event(self)
        for host in self.hosts:
            self._attend(host)
        self.lowest = min(self.lowest, sum(self._serves(host) for host in self.hosts) + len(self.own))

    def _serves(self, host: Host) -> bool:
        up = not host.dead and self.programs[host.runs](host.number, self.now_s - host.since_s).ready
        return up and host.number not in self.own

    def _attend(self, host: Host) -> None:
        age_s = self.now_s - host.since_s
        if self.kills_after_s is not None and host.runs == NEW and age_s >= self.kills_after_s:
            host.dead = True
        if host.dead:
            if self.now_s - host.heard_s >= LIVENESS_S:
                host.shown = None
            return
        if host.runs != host.wanted:
            host.runs, host.since_s, age_s = host.wanted, self.now_s, 0.0
        host.seen = True
        looks = self.programs[host.runs](host.number, age_s)
        shown = host.runs if looks.ready else None
        if shown != host.shown or looks.restarts != host.restarts or self.now_s - host.heard_s >= REPORT_S:
            host.heard_s = self.now_s
        if shown is not None and (shown != host.shown or looks.restarts != host.restarts):
            host.ready_since_s = self.now_s
        host.shown, host.restarts = shown, looks.restarts

    def is_silent(self, host: Host) -> bool:
        return host.dead and self.now_s - host.heard_s >= LIVENESS_S

    def stages(self, revision: str, min_ready_s: float) -> Stages:
        found: dict[Stage, set[Key]] = {}
        for host in self.hosts:
            key = self.key(host.number)
            stage = self._stage(host, revision, min_ready_s)
            if key[0] in self.away:
                stage = Stage.AWAY
            elif host.held and stage is not Stage.DONE:
                stage = Stage.HELD
            found.setdefault(stage, set()).add(key)
        return found

    def _stage(self, host: Host, revision: str, min_ready_s: float) -> Stage:
        if host.wanted != revision:
            if self.is_silent(host):
                return Stage.SILENT
            return Stage.UP if host.shown else Stage.DOWN
        if host.shown == revision:
            is_done = self.now_s - host.ready_since_s >= min_ready_s and host.seen
            return Stage.DONE if is_done else Stage.SETTLING
        if self.is_silent(host):
            return Stage.GONE if host.seen else Stage.LOST
        if host.seen:
            return Stage.UNDER_WAY
        return Stage.UNTOUCHED if host.shown else Stage.UNHEARD


@dataclass
class Order:
    """One roll-out as the process would run it.

    Attributes:
        end: how it ended; None: it did not.
        largest: the largest batch.
        switched: how many instances it switched.
        promotes_at_s: when people promote the step that waits for them; None: never. `aborts_at_s`: likewise.
        check: what a check says: None: that is not known.
        most_switched: by the number of steps that were over, how many instances were switched at most.
    """

    world: World
    policy: Policy
    revision: str = NEW
    progress: RolloutProgress = field(default_factory=RolloutProgress)
    end: moves.Step | None = None
    largest: int = 0
    switched: int = 0
    promotes_at_s: float | None = None
    aborts_at_s: float | None = None
    check: Callable[[World], bool | None] = lambda _: True
    most_switched: dict[int, int] = field(default_factory=dict)
    meter: Meter = field(default_factory=lambda: Meter(0.0, 0.0))

    def begin(self, ailing: frozenset[Key] | None = None) -> Order:
        """`ailing`: inherited by a roll-back."""
        if ailing is None:
            hosts = self.world.hosts
            ailing = frozenset(self.world.key(one.number) for one in hosts if not one.shown)
            ailing = ailing if len(ailing) < len(hosts) else frozenset()
        is_back = self.revision == OLD
        self.progress = replace(self.progress, ailing=ailing, proven=is_back, trusted=is_back)
        return self

    def run(self, longest_s: float = FOREVER_S) -> moves.Step:
        """Until it ends, or holds for good."""
        until = self.world.now_s + longest_s
        while self.end is None and self.world.now_s < until:
            self.world.tick()
            self._look()
        return self.end or self._step(self._judged())

    def _judged(self) -> Stages:
        return self.meter.evidence.skip_proved(
            self.world.stages(self.revision, self.policy.min_ready_s), self.progress.fell
        )

    def _look(self) -> None:
        self.meter.advance(self.world.now_s)
        stages, progress = self._judged(), self.progress
        restarts = {
            self.world.key(host.number): host.restarts
            for host in self.world.hosts
            if host.wanted == self.revision and host.seen and host.restarts
        }
        found = self.meter.evidence.update(stages, restarts, progress, self.meter.now_s, self.policy.soak_s)
        fell = (progress.fell | found.fell) - found.recovered
        self.progress = progress = replace(progress, fell=fell, failed=progress.failed | found.failed)
        if self.aborts_at_s is not None and self.world.now_s >= self.aborts_at_s:
            self.end = moves.Failed("aborted")
            return
        if self.promotes_at_s is not None and self.world.now_s >= self.promotes_at_s:
            self.progress = progress = replace(progress, promoted=progress.steps_over + 1)
        step = progress.step
        if step is not None and step.hold_s and not (step.check or progress.batch or self.world.away):
            self.meter.note_held()
        self._note_switched()
        to_switch = len(keys_in(stages, *NOT_SWITCHED).intersection(progress.batch))
        mark = (
            *(self.meter.evidence.progress, progress.batch, to_switch, frozenset(self.world.away), progress.proven),
            progress.steps_over,
        )
        self.meter.note_mark(mark)
        is_disturbed = bool(found.fell or found.failed or to_switch)
        self.meter.note_calm(is_calm=not progress.batch and is_calm(stages, progress), is_disturbed=is_disturbed)
        self._obey(self._step(stages))

    def _step(self, stages: Stages) -> moves.Step:
        meter = self.meter
        return plan.next_step(self.policy, stages, self.progress, meter.stalled_s, meter.calm_s, meter.step_s)

    def _note_switched(self) -> None:
        """Hosts that are dead show nothing, so others take their place."""
        count = sum(host.wanted == self.revision and not host.dead for host in self.world.hosts)
        over = self.progress.steps_over
        self.most_switched[over] = max(count, self.most_switched.get(over, 0))

    def _obey(self, step: moves.Step) -> None:
        progress = self.progress
        match step:
            case moves.Begin(batch):
                self.largest = max(self.largest, len(batch))
                self.progress = replace(progress, batch=batch)
                self.meter.begin_step()
            case moves.Switch(instances):
                self.switched += len(instances)
                for key in instances:
                    host = self.world.host(key)
                    host.wanted, host.seen = self.revision, False
            case moves.GiveBack(failed):
                failed_now = progress.failed | set(failed)
                self.progress = replace(progress, batch=(), batches_done=progress.batches_done + 1, failed=failed_now)
            case moves.Prove(instances) | moves.Finished(_, instances) if not self._have_reported(instances):
                pass
            case moves.Prove() | moves.StepOver() | moves.AskCheck():
                self._obey_step(step)
            case moves.Finished() | moves.Failed():
                self.end = step

    def _obey_step(self, step: moves.Prove | moves.StepOver | moves.AskCheck) -> None:
        if isinstance(step, moves.Prove):
            self.progress = replace(self.progress, proven=True)
            return
        if isinstance(step, moves.StepOver):
            self.progress = replace(self.progress, steps_over=self.progress.steps_over + 1)
            self.meter.begin_step()
            return
        verdict = self.check(self.world)
        if verdict is False:
            self.end = moves.Failed("the check is beyond its bound")
        elif verdict and not self.world.away:
            self.meter.note_held()

    def _have_reported(self, instances: frozenset[Key]) -> bool:
        return all(self.world.now_s - self.world.host(key).heard_s <= 1.5 * REPORT_S for key in instances)
