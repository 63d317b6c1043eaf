"""Shares of weights during a roll-out's steps: only instances that it switched have one, as long as its order lasts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from typing import Final

from control.errors import MayNotBegin
from control.waves import FULL_WEIGHT, weight_in
from nanny.actions.contents import Contents
from nanny.actions.effects import Effects
from nanny.actions.subject import ServiceContext
from nanny.automaton.states import ACTIONS, Action
from nanny.records.services import steps_of
from nanny.rollout.views import Key
from nanny.snapshots.wanted import READY, target_of
from nanny.snapshots.weights import share_of, weighed_instance
from nanny.world.writing import InstanceWrite, Written

log = logging.getLogger(__name__)

AT_ONCE: Final = 200
_SOON_S: Final = 1.0
_REFUSED_S: Final = 30.0


class WeightShares:
    """Writes shares that are wrong, whatever made them so: also what a superseded or failed order left."""

    def __init__(self, effects: Effects, contents: Contents) -> None:
        self._effects, self._contents = effects, contents
        self._refused: dict[str, dict[Key, tuple[int, float]]] = {}
        """By service and instance: the version that HQ refused to change, and until when it is not asked again."""

    async def step(self, subject: ServiceContext) -> float | None:
        """Write the first wrong shares. Return in how many seconds to look again at the latest; None: all are right."""
        wanted, refused, now_s = self._wanted_shares(subject), self._refused.get(subject.id, {}), self._now_s()
        if not wanted:
            self._refused.pop(subject.id, None)
            return None
        waits = {
            key
            for key, (version, until_s) in refused.items()
            if key in wanted and now_s < until_s and subject.instances[key].meta.version == version
        }
        writes = []
        for key in sorted(wanted.keys() - waits)[:AT_ONCE]:
            after = weighed_instance(subject.instances[key], wanted[key])
            if after is not None:
                writes.append(subject.write(key, after))
        if not writes:
            return _REFUSED_S
        with suppress(MayNotBegin):  # frozen: it waits, as everything does
            self._note_refused(subject.id, await self._effects.write_apart(subject, writes), writes)
        return _SOON_S

    def _note_refused(self, service_id: str, written: Written, writes: Sequence[InstanceWrite]) -> None:
        if not written.refused:
            return
        if service_id not in self._refused:
            (location, name), why = min(written.refused.items())
            log.warning("%s: HQ refuses the weight of %s (%s): %s", service_id, name, location, why)
        until_s = self._now_s() + _REFUSED_S
        again = {write.key: (write.version, until_s) for write in writes if write.key in written.refused}
        self._refused.setdefault(service_id, {}).update(again)

    def _now_s(self) -> float:
        return self._effects.controller.clock.now()

    def _wanted_shares(self, subject: ServiceContext) -> Mapping[Key, int]:
        """The right share of each instance that has another one now."""
        instances, out = subject.instances, {*subject.away, *subject.policy.leave_out}
        shares = subject.picture.tally("shares", lambda key: share_of(instances[key]) if key in instances else None)
        wanted = {key: FULL_WEIGHT for share, keys in shares.groups().items() if share != FULL_WEIGHT for key in keys}
        percent, switched = self._of_rollout(subject)
        if active := _on_its_way(subject):
            runs = self._running(subject, active)
            # Others keep theirs until they are switched, else full traffic would come back to what failed.
            wanted = {key: share for key, share in wanted.items() if key in runs}
        wanted |= dict.fromkeys(switched, percent)
        return {key: share for key, share in wanted.items() if key[0] not in out and not _has(subject, key, share)}

    def _of_rollout(self, subject: ServiceContext) -> tuple[int, Set[Key]]:
        """The share that the steps of the service's roll-out give, and to which instances; FULL_WEIGHT: to none."""
        running = next((one for one in subject.service.running() if one.action is Action.ACTIVATE), None)
        if running is None:
            return FULL_WEIGHT, frozenset()
        record = self._effects.record(subject, running)
        percent = weight_in(steps_of(record.step), record.steps_over)
        if percent == FULL_WEIGHT:
            return percent, frozenset()
        return percent, self._running(subject, running.snapshot)

    def _running(self, subject: ServiceContext, snapshot: str) -> Set[Key]:
        """Instances that HQ wants to run the snapshot."""
        instances, revision_id = subject.instances, self._contents.revision_id(subject.id, snapshot)
        tally = subject.picture.tally(
            ("runs", revision_id),
            lambda key: key in instances and target_of(instances[key], revision_id) == READY,
        )
        return tally.groups().get(True, frozenset())


def _on_its_way(subject: ServiceContext) -> str:
    """The snapshot that work towards ACTIVE is under way for; empty: none is."""
    active = subject.service.wanted_active()
    is_going = bool(active) and subject.service.tuples[active].current in ACTIONS
    return active if is_going or subject.service.rolling_back else ""


def _has(subject: ServiceContext, key: Key, percent: int) -> bool:
    return key not in subject.instances or weighed_instance(subject.instances[key], percent) is None
