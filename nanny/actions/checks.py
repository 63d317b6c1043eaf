"""Checks of roll-outs: asked now and then, and what the last answer was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nanny.actions.contents import Contents
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import RunningAction
from nanny.rollout.checks import Bound, CheckVerdict, NoDataMeans, judge_values
from nanny.snapshots.wanted import READY, target_of
from nanny.world.prometheus import NoAnswer, NoReading, PrometheusPort
from nannypb.v1 import service_pb2 as pb
from serving.clock import Clock

_EVERY_S: Final = 5.0
_MEANS: Final = {
    pb.NO_DATA_UNSPECIFIED: NoDataMeans.WAIT,
    pb.NO_DATA_WAIT: NoDataMeans.WAIT,
    pb.NO_DATA_FAIL: NoDataMeans.FAIL,
    pb.NO_DATA_PASS: NoDataMeans.PASS,
}


@dataclass(frozen=True, slots=True)
class _AskedCheck:
    check: tuple[int, str]
    at_s: float
    verdict: CheckVerdict


@dataclass(frozen=True, slots=True)
class _CheckPause:
    until_s: float
    words: str


class RolloutChecks:
    """Asks one question at a time for each service, and one for all services of a Prometheus that was silent lately.

    Else each service with a check would wait for that Prometheus with a worker that the others need.
    """

    def __init__(self, prometheus: PrometheusPort, contents: Contents, clock: Clock) -> None:
        self._prometheus, self._contents, self._clock = prometheus, contents, clock
        self._asked: dict[str, _AskedCheck] = {}
        self._silent: dict[str, _CheckPause] = {}

    async def verdict(self, subject: ServiceContext, running: RunningAction, check: pb.RolloutCheck) -> CheckVerdict:
        """Return the check's verdict, at most a few seconds old."""
        last, key = self._asked.get(subject.id), (running.number, check.name)
        if last is not None and last.check == key and self._clock.now() - last.at_s < _EVERY_S:
            return last.verdict
        query = self._query(subject, running, check.query)
        try:
            values = await self._read(check.prometheus, query, subject.id)
        except NoReading as error:
            verdict = CheckVerdict(None, str(error))
        else:
            verdict = judge_values(values, _bound(check), _MEANS.get(check.no_data, NoDataMeans.WAIT))
        self._asked[subject.id] = _AskedCheck(key, self._clock.now(), verdict)
        return verdict

    async def _read(self, name: str, query: str, service: str) -> list[float]:
        now_s = self._clock.now()
        if (silence := self._silent.get(name)) is not None:
            if now_s < silence.until_s:
                raise NoReading(silence.words)
            self._silent[name] = replace(silence, until_s=now_s + 2 * _EVERY_S)  # meanwhile no other asks it
        try:
            values = await self._prometheus.read(name, query, service)
        except NoAnswer as error:
            self._silent[name] = _CheckPause(self._clock.now() + _EVERY_S, str(error))
            raise
        except NoReading:
            self._silent.pop(name, None)
            raise
        self._silent.pop(name, None)
        return values

    def forget(self, service: str) -> None:
        """Forget a service's checks, as no roll-out of it is under way."""
        self._asked.pop(service, None)

    def _query(self, subject: ServiceContext, running: RunningAction, query: str) -> str:
        revision_id = self._contents.revision_id(subject.id, running.snapshot)
        names = (name for (_, name), one in subject.instances.items() if target_of(one, revision_id) == READY)
        switched = "|".join(name.replace(".", "[.]") for name in sorted(names))
        words = {"$service": subject.id, "$revision": revision_id, "$instances": switched}
        for word, value in words.items():
            query = query.replace(word, value)
        return query


def _bound(check: pb.RolloutCheck) -> Bound:
    return Bound(
        check.below if check.HasField("below") else None,
        check.above if check.HasField("above") else None,
    )
