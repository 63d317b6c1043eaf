"""The health of what should serve: how many instances are ready, which are not or restart. Nothing acts on it."""

from __future__ import annotations

from typing import Final

from nanny.actions import reports
from nanny.actions.stages import restarts_of, stages_of
from nanny.actions.subject import ServiceContext
from nanny.rollout.judge import Evidence
from nanny.rollout.views import SWITCHED, Key, RolloutProgress, keys_in
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import READY
from nannypb.v1.records_pb2 import HealthRecord

_SHOWN: Final = 3


class HealthMonitor:
    """Observed restarts of each service. A new process sees only after some minutes which instances keep restarting."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, Evidence]] = {}

    def health_record(self, subject: ServiceContext, content: Content, now_s: float) -> HealthRecord:
        """Health of the instances that the snapshot names.

        Args:
            now_s: on the clock of this process.
        """
        snapshot, evidence = self._seen.get(subject.id, ("", Evidence()))
        if snapshot != content.id:
            evidence = Evidence()
        self._seen[subject.id] = content.id, evidence
        stages = stages_of(subject, content)
        found = evidence.update(stages, restarts_of(subject, content), RolloutProgress(), now_s, subject.policy.soak_s)
        record, remarks = health_of(subject, content), []
        floor = record.wanted - subject.policy.unavailable(record.wanted)
        if record.ready < floor:
            why = _why(subject, _down(subject, content))
            remarks.append(f"{record.ready} of {record.wanted} are ready, {floor} should be: {why}")
        looping = sorted(found.failed & keys_in(stages, *SWITCHED))
        if looping:
            remarks.append(f"{_some(looping)} keep{'s' * (len(looping) == 1)} restarting")
        record.remark = "; ".join(remarks)
        return record

    def forget(self, service: str) -> None:
        """Forget a service that is gone, or has work under way: what was seen says nothing about what comes."""
        self._seen.pop(service, None)


def health_of(subject: ServiceContext, content: Content) -> HealthRecord:
    """Health without names: only the numbers."""
    wanted = sum(key[0] not in subject.policy.leave_out for key in content.placements)
    return HealthRecord(ready=wanted - len(_down(subject, content)), wanted=wanted)


def _down(subject: ServiceContext, content: Content) -> list[Key]:
    named = (key for key in content.placements if key[0] not in subject.policy.leave_out)
    return [key for key in named if not _is_ready(subject, key)]


def _is_ready(subject: ServiceContext, key: Key) -> bool:
    instance = subject.instances.get(key)
    return instance is not None and reports.is_ready(instance)


def _why(subject: ServiceContext, down: list[Key]) -> str:
    location, name = min(down)
    instance = subject.instances.get((location, name))
    why = "not in HQ"
    if instance is not None:
        wanted = next((one.id for one in instance.spec.revision if one.target == READY), "")
        why = "its agent is silent" if reports.is_silent(instance) else reports.why_not(instance, wanted)
    more = f" and {len(down) - 1} more" if len(down) > 1 else ""
    return f"{name} ({location}): {why}{more}"


def _some(keys: list[Key]) -> str:
    names = ", ".join(f"{name} ({location})" for location, name in keys[:_SHOWN])
    return names + (f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else "")
