"""What to say of each wanted revision, given how far it is. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hqpb.v1.instance_pb2 import ContainerStatus, InstanceRevision, RevisionStatus
from instancectl.reports import conditions
from instancectl.reports.conditions import Verdict
from instancectl.wanted.desired import Desired, is_wanted_created
from instancectl.wanted.fingerprint import RevisionKey


@dataclass(frozen=True, slots=True)
class Stage:
    """What is on stage: the running revision and its sections.

    Attributes:
        is_leaving: it is being stopped.
        ends: the supervisor itself ends.
    """

    key: RevisionKey | None = None
    sections: tuple[ContainerStatus, ...] = ()
    is_leaving: bool = False
    ends: bool = False


def statuses(
    desired: Desired,
    installed: Callable[[RevisionKey], Verdict | None],
    stage: Stage,
    before: Mapping[str, RevisionStatus],
    wall_s: float,
) -> dict[str, RevisionStatus]:
    """The status of each wanted revision, by id."""
    return {
        key.id: conditions.revision_status(
            key.id,
            _installed(key, revision, installed),
            _ready(key, revision, desired, _installed(key, revision, installed), stage),
            _sections(key, revision, stage),
            spec_version=desired.version,
            before=before.get(key.id),
            wall_s=wall_s,
        )
        for key, revision in desired.by_key.items()
    }


def _installed(
    key: RevisionKey, revision: InstanceRevision, installed: Callable[[RevisionKey], Verdict | None]
) -> Verdict:
    return installed(key) or (conditions.CREATED if is_wanted_created(revision) else conditions.PENDING)


def _ready(key: RevisionKey, revision: InstanceRevision, desired: Desired, installed: Verdict, stage: Stage) -> Verdict:
    # By id: while new files of it are prepared, the revision that runs is still this one.
    if stage.key is not None and stage.key.id == key.id:
        return conditions.STOPPING if stage.is_leaving or stage.ends else conditions.readiness(stage.sections)
    if stage.ends:
        return conditions.STOPPED
    if key != desired.ready_key:
        return conditions.NOT_WANTED_AT_ALL if is_wanted_created(revision) else conditions.NOT_WANTED
    if not installed.holds:
        return conditions.NOT_INSTALLED
    return conditions.GIVING_WAY if stage.key else conditions.STARTING


def _sections(key: RevisionKey, revision: InstanceRevision, stage: Stage) -> list[ContainerStatus]:
    """Those that the spec knows: HQ refuses others."""
    if stage.key is None or stage.key.id != key.id:
        return []
    known = {container.name for container in revision.container}
    return [section for section in stage.sections if section.name in known]
