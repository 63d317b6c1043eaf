"""What agents say of their revisions. On the path of every heartbeat, so it does not go through descriptors."""

import re
from collections.abc import Iterable

from hq.validation.faults import Faults, member, printable_value
from hq.validation.typed_fields import clean_times, is_plain_time
from hq.validation.values import MAX_CONTAINERS, check_id, is_id
from hqpb.v1.instance_pb2 import (
    Condition,
    ConditionStatus,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    InstanceRevision,
    RevisionStatus,
)
from hqpb.v1.service_pb2 import BeginReportingRequest, ReportStatusRequest

MAX_REPORT_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 4 * 1024

is_reason = re.compile(r"(?:[A-Z][A-Za-z0-9]{0,63})?").fullmatch
# RevisionStatus has no other enum at any depth; a test checks that.
KNOWN_STATUSES = frozenset(ConditionStatus.values())


def check_begin(item: BeginReportingRequest, path: str, earlier: int | None) -> None:
    """One item of BeginReportings; `earlier`: the item that names the same revision. Raises InvalidRequest."""
    faults = Faults()
    for name in ("instance_id", "revision_id", "node"):
        faults.note(check_id(getattr(item, name), member(path, name)))
    if earlier is not None:
        faults.add(path, f"repeats the revision of begin[{earlier}], which would invalidate that one: send it once")
    faults.raise_any()


def check_report(report: ReportStatusRequest, prefix: str = "", spec_revision: InstanceRevision | None = None) -> None:
    """A report as ReportStatus takes it. Never refused for times, messages and receipts: see clean_report.

    spec_revision is this revision in the current spec, given only if revision.spec_version is the version of
    that spec: then the report may name its containers only. An agent that acted on another spec may name any.

    Raises:
        InvalidRequest: with the first violations by path, relative to `prefix` (`report[3]`).
    """
    faults = Faults()
    revision = report.revision
    if report.ByteSize() > MAX_REPORT_BYTES:
        faults.add(prefix, f"{report.ByteSize()} bytes are too large: keep within {MAX_REPORT_BYTES}")
        faults.raise_any()
    if (count := len(revision.container)) > MAX_CONTAINERS:
        faults.add(member(prefix, "revision.container"), f"{count} are too many: report at most {MAX_CONTAINERS}")
        faults.raise_any()
    if not (is_id(report.instance_id) and is_id(report.node) and is_id(revision.id)):
        note_ids(faults, report, prefix)
    if not (report.uid and revision.incarnation and revision.sequence):
        note_numbers(faults, report, prefix)
    for name, condition in (("installed", revision.installed), ("ready", revision.ready)):
        if condition.status not in KNOWN_STATUSES or not is_reason(condition.reason):
            note_condition(faults, condition, member(prefix, f"revision.{name}"))
    note_containers(faults, revision.container, prefix, spec_revision)
    faults.raise_any()


def note_ids(faults: Faults, report: ReportStatusRequest, prefix: str) -> None:
    faults.note(check_id(report.instance_id, member(prefix, "instance_id")))
    faults.note(check_id(report.node, member(prefix, "node")))
    faults.note(check_id(report.revision.id, member(prefix, "revision.id")))


def note_numbers(faults: Faults, report: ReportStatusRequest, prefix: str) -> None:
    if not report.uid:
        faults.add(member(prefix, "uid"), "is 0: send the uid returned by BeginReporting")
    if not report.revision.incarnation:
        faults.add(member(prefix, "revision.incarnation"), "is 0: send the one returned by BeginReporting")
    if not report.revision.sequence:
        faults.add(member(prefix, "revision.sequence"), "is 0: count the reports of an incarnation from 1")


def note_condition(faults: Faults, condition: Condition, path: str) -> None:
    if condition.status not in KNOWN_STATUSES:
        names = ", ".join(ConditionStatus.keys())
        faults.add(f"{path}.status", f"{condition.status} is not a valid ConditionStatus: use {names}")
    note_reason(faults, condition.reason, f"{path}.reason")


def note_reason(faults: Faults, reason: str, path: str) -> None:
    if not is_reason(reason):
        faults.add(path, f"{printable_value(reason)} is not a valid reason: use one CamelCase word of up to 64 letters")


def note_containers(
    faults: Faults, containers: Iterable[ContainerStatus], prefix: str, spec_revision: InstanceRevision | None
) -> None:
    names = []
    for index, container in enumerate(containers):
        names.append(container.name)
        if container.HasField("last_termination") or not container.state.HasField("running"):
            note_state(faults, container, member(prefix, f"revision.container[{index}]"))
    if not all(names) or len(set(names)) < len(names):
        note_names(faults, names, prefix)
    if spec_revision is not None:
        note_strangers(faults, names, prefix, spec_revision)


def note_state(faults: Faults, container: ContainerStatus, path: str) -> None:
    note_reason(faults, container.last_termination.reason, f"{path}.last_termination.reason")
    note_reason(faults, container.state.waiting.reason, f"{path}.state.waiting.reason")
    note_reason(faults, container.state.terminated.reason, f"{path}.state.terminated.reason")


def note_names(faults: Faults, names: list[str], prefix: str) -> None:
    paths = [member(prefix, f"revision.container[{index}].name") for index in range(len(names))]
    for path, name in zip(paths, names, strict=True):
        if not name:
            faults.add(path, "is empty: use the container's name in the spec")
    faults.note_repeats(zip(paths, names, strict=True))


def note_strangers(faults: Faults, names: list[str], prefix: str, spec_revision: InstanceRevision) -> None:
    known = {container.name for container in spec_revision.container}
    for index, name in enumerate(names):
        if name and name not in known:
            path = member(prefix, f"revision.container[{index}].name")
            faults.add(path, f"the spec has no container {printable_value(name)}: leave it out")


def clean_report(revision: RevisionStatus) -> None:
    """Make a report fit to be stored, in place: what HQ would rather change than refuse.

    Receipts are dropped (only HQ gives them), messages over 4 KiB are cut between two characters, of output over 4 KiB
    the end stays, times out of protobuf's range are moved into it (clean_times). Anything else stays as it is, unknown
    fields too.
    """
    for condition in (revision.installed, revision.ready):
        if condition.HasField("receipt"):
            condition.ClearField("receipt")
    if revision.ByteSize() > MAX_MESSAGE_BYTES:
        cut_messages(revision)
    if not has_plain_times(revision):
        clean_times(revision)


def has_plain_times(revision: RevisionStatus) -> bool:
    """Whether clean_times would change nothing. Heartbeats pass here, and this takes a third of its time."""
    times = [revision.installed.last_transition_time, revision.ready.last_transition_time]
    for container in revision.container:
        if container.HasField("last_termination") or container.state.HasField("terminated"):
            return False
        times.append(container.state.running.start_time)
    return all(is_plain_time(time) for time in times)


def cut_messages(revision: RevisionStatus) -> None:
    cut_message(revision.installed)
    cut_message(revision.ready)
    for container in revision.container:
        cut_message(container.last_termination)
        cut_message(container.state.waiting)
        cut_message(container.state.terminated)
        cut_output(container.last_termination)
        cut_output(container.state.terminated)


def cut_output(ended: ContainerTerminated) -> None:
    """Cut a container's output, in place: the end stays."""
    encoded = ended.output.encode()
    if len(encoded) > MAX_MESSAGE_BYTES:
        ended.output = encoded[-MAX_MESSAGE_BYTES:].decode(errors="ignore")


def cut_message(holder: Condition | ContainerWaiting | ContainerTerminated) -> None:
    encoded = holder.message.encode()
    if len(encoded) > MAX_MESSAGE_BYTES:
        holder.message = encoded[:MAX_MESSAGE_BYTES].decode(errors="ignore")
