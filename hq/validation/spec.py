"""What an instance should be: rules that span its revisions, and the way to all the others."""

from collections.abc import Sequence

from hq.validation.enums import note_enums
from hq.validation.faults import Faults
from hq.validation.ids import check_id
from hq.validation.resources import note_allocation, note_request
from hq.validation.revision import note_revision
from hqpb.v1.instance_pb2 import REVISION_TARGET_READY, InstanceRevision, InstanceSpec

MAX_REVISIONS = 64


def note_spec(faults: Faults, spec: InstanceSpec, path: str) -> None:
    note_request(faults, spec.resource_request, f"{path}.resource_request")
    note_allocation(faults, spec.allocation, f"{path}.allocation")
    if spec.node_name:
        faults.note(check_id(spec.node_name, f"{path}.node_name"))
    note_revisions(faults, spec.revision, f"{path}.revision")
    note_enums(faults, spec, path)


def note_revisions(faults: Faults, revisions: Sequence[InstanceRevision], path: str) -> None:
    if len(revisions) > MAX_REVISIONS:
        faults.add(path, f"{len(revisions)} revisions are too many: keep at most {MAX_REVISIONS}")
    for index, revision in enumerate(revisions):
        note_revision(faults, revision, f"{path}[{index}]")
    faults.note_repeats((f"{path}[{index}].id", revision.id) for index, revision in enumerate(revisions))
    note_targets(faults, revisions, path)


def note_targets(faults: Faults, revisions: Sequence[InstanceRevision], path: str) -> None:
    ready = [index for index, revision in enumerate(revisions) if revision.target == REVISION_TARGET_READY]
    for index in ready[1:]:
        faults.add(
            f"{path}[{index}].target",
            f"{path}[{ready[0]}] is READY already: only one revision may be READY, the others INSTALLED",
        )
