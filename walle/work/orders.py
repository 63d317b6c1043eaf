"""People's orders about hosts. Each function is one transaction; Refused changes nothing and says why."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from hashlib import blake2b

from control.errors import Refused
from walle.approval.tasks import tasks_for
from walle.fuses.fuse import Moment
from walle.healing.check_sources import MOST_BYTES, changed_check, within_bounds
from walle.healing.decision import ENDS_DNS_FIX
from walle.healing.lanes import end_dns_fix
from walle.tables import (
    NAMES,
    MembershipChange,
    MembershipRule,
    NotPossible,
    OperationEvent,
    is_possible,
    membership_rule,
)
from walle.work.book import HOST, PROJECT, RESTORED, WalleTransaction, World, stored_record
from walle.work.inventory import check_listed, check_permitted, identify, import_machines, machine_for
from walle.work.repairs import move
from walle.work.restored import why_busy
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATUS_READY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    STAGE_REQUESTED,
    STAGE_VERIFYING,
    After,
    Check,
    Host,
    HostState,
    Machine,
    Operation,
    OperationKind,
)
from wallepb.v1.project_pb2 import Project
from wallepb.v1.service_pb2 import (
    HOST_CHANGE_MOVE,
    HOST_CHANGE_PREPARE,
    HOST_CHANGE_REMOVE,
    AddHostRequest,
    CancelOperationRequest,
    HostChecks,
    Order,
    SetHostStateRequest,
    StartOperationRequest,
)

_CHANGES = {
    (HOST_CHANGE_PREPARE, False): MembershipChange.PREPARE,
    (HOST_CHANGE_MOVE, False): MembershipChange.MOVE,
    (HOST_CHANGE_MOVE, True): MembershipChange.MOVE_RELEASE,
    (HOST_CHANGE_REMOVE, False): MembershipChange.REMOVE,
}


def add_host(book: WalleTransaction, given: Order, world: World, now: Moment, known: Iterable[Machine]) -> None:
    """Add a host. `known`: the machines of the inventory."""
    order = given.add_host
    if not given.may_import:  # first: whether it is a host is not for everybody to know
        check_permitted(book, order.host, order.project, may_import=False)
    if book.get(HOST, order.host) is not None:
        raise Refused(f"host {order.host} already exists", "ALREADY_EXISTS")
    project = stored_record(book, PROJECT, order.project)
    machine = machine_for(book, order, known, partial(world.is_reached, given.access), may_import=given.may_import)
    state = HOST_STATE_FREE if order.preordered else order.state or HOST_STATE_ASSIGNED
    tells = _membership_rule(_adding(order), state)
    host = identify(Host(name=order.host, project=order.project), machine)
    # The host is in use only once the CMSs have agreed.
    host.state, host.status = HOST_STATE_FREE if tells.operation else state, HOST_STATUS_READY
    if tells.operation:
        _begin(host, project, tells, given.by, "added", world, now, ignore_cms=order.ignore_cms)
    book.put(HOST, order.host, host)


def import_hosts(book: WalleTransaction, given: Order, world: World, now: Moment, known: Iterable[Machine]) -> None:
    """Import machines, and add those of them that become hosts. Refused: one is a host of another project."""
    order = given.import_machines
    import_machines(book, order.machines, known, partial(world.is_reached, given.access))
    for wanted in order.hosts:
        host = book.get(HOST, wanted.host)
        if book.get(PROJECT, wanted.project) is None:
            raise Refused(f"host {wanted.host}: project {wanted.project} does not exist", "NOT_FOUND")
        if host is None:
            add_host(book, Order(by=given.by, access=given.access, add_host=wanted), world, now, known)
        elif host.project != wanted.project:
            move = f"move it with `walle hosts switch-project {host.name} {wanted.project}`"
            raise Refused(f"host {host.name} is in project {host.project}: {move}", "ALREADY_EXISTS")


def change_host(book: WalleTransaction, given: Order, world: World, now: Moment) -> None:
    order = given.change_host
    host = _idle(book, order.host)
    project = stored_record(book, PROJECT, host.project)
    if order.change == HOST_CHANGE_MOVE:
        stored_record(book, PROJECT, order.project)
        check_permitted(book, host.name, order.project, may_import=given.may_import)
    tells = _membership_rule(_CHANGES[order.change, order.release], host.state)
    is_gone = order.change == HOST_CHANGE_REMOVE
    if is_gone or order.change == HOST_CHANGE_MOVE:
        end_dns_fix(host, f"{given.by} moved or removed the host", now)
    if tells.operation:
        _check_not_busy(book, host)
        _begin(host, project, tells, given.by, order.reason, world, now, ignore_cms=order.ignore_cms)
        host.operation.after.project, host.operation.after.remove = order.project, is_gone
    elif order.change == HOST_CHANGE_MOVE:
        host.project = order.project
    if is_gone and not tells.operation:
        book.delete(HOST, host.name)
    else:
        book.put(HOST, host.name, host)


def set_host_state(book: WalleTransaction, order: SetHostStateRequest, by: str) -> None:
    """Set the state to assigned, maintenance or probation; into and out of use a host goes only through the CMSs."""
    host = _idle(book, order.host)
    if order.state and HOST_STATE_FREE in (order.state, host.state) and order.state != host.state:
        if order.state == HOST_STATE_FREE:
            raise Refused(f"host {host.name}: `walle hosts switch-project {host.name} PROJECT --release` frees it")
        raise Refused(f"host {host.name}: it is free; `walle hosts prepare {host.name}` takes it into use")
    if order.state:
        host.state, host.state_reason = order.state, f"{by}: {order.reason}"
    if order.status:
        host.status, host.status_reason = order.status, f"{by}: {order.reason}"
        # A person has looked at it: the scheme starts over.
        host.ClearField("last_repair")
        host.ClearField("attempt")
    book.put(HOST, host.name, host)


def start_operation(book: WalleTransaction, order: StartOperationRequest, by: str, world: World, now: Moment) -> None:
    """Start an operation by hand: no limit is used, and no fuse blocks it."""
    host = _idle(book, order.host)
    if order.kind in (OPERATION_KIND_DNS_FIX, OPERATION_KIND_TEMPORARY_UNREACHABLE) or order.kind not in NAMES:
        raise Refused(f"{NAMES.get(order.kind, 'this operation')} cannot be requested", "INVALID_ARGUMENT")
    project = stored_record(book, PROJECT, host.project)
    _check_not_busy(book, host)
    tells = MembershipRule(order.kind, None)
    _begin(host, project, tells, by, order.reason, world, now, ignore_cms=order.ignore_cms)
    host.operation.group_id = _own_group(order.group_id, by)
    if order.kind in ENDS_DNS_FIX:
        end_dns_fix(host, f"{NAMES[order.kind]} begins", now)
    book.put(HOST, host.name, host)


def cancel_operation(book: WalleTransaction, order: CancelOperationRequest, by: str, now: Moment) -> None:
    host = stored_record(book, HOST, order.host)
    if not host.HasField("operation"):
        raise Refused(f"host {host.name}: no operation is under way")
    if not is_possible(host.operation, OperationEvent.CANCEL):
        raise Refused(
            f"host {host.name}: {NAMES[host.operation.kind]} has begun or is ending: it cannot be cancelled any more"
        )
    move(book, host, OperationEvent.CANCEL, now, f"cancelled by {by}: {order.reason}")


def take_checks(book: WalleTransaction, report: HostChecks, now: Moment) -> None:
    """Store what sources say of checks; a check that still fails keeps its time."""
    _take_checks(book, stored_record(book, HOST, report.host), report, now)


def _take_checks(book: WalleTransaction, host: Host, report: HostChecks, now: Moment) -> None:
    if report.boot_id:
        host.boot_id = report.boot_id
    if _is_awaited(host):
        host.heard_ms = now.ms
    for one in report.check:
        changed = changed_check(_check_named(host, one.name), one, now)
        if changed is not None:
            _replace_check(host, changed)
    if sum(check.ByteSize() for check in host.check) > MOST_BYTES:
        before = len(host.check)
        host.check.extend(within_bounds(host.check, now))
        del host.check[:before]
    book.put(HOST, host.name, host)


def take_reports(book: WalleTransaction, reports: Iterable[HostChecks], now: Moment) -> None:
    """Take the reports of one event. A host that was removed meanwhile is skipped."""
    for report in reports:
        if (host := book.get(HOST, report.host)) is not None:
            _take_checks(book, host, report, now)


def says_news(host: Host, report: HostChecks, now: Moment) -> bool:
    """Whether the report is news. Most are not, and cost no write."""
    is_news = any(changed_check(_check_named(host, one.name), one, now) is not None for one in report.check)
    return is_news or _is_awaited(host) or report.boot_id not in ("", host.boot_id)


def _is_awaited(host: Host) -> bool:
    """Whether planned work on it was done, and nobody has reported anything of it since."""
    operation = host.operation
    is_done = bool(operation.scenario) and operation.stage == STAGE_VERIFYING
    return is_done and host.heard_ms < operation.since_ms


def _check_named(host: Host, name: str) -> Check | None:
    return next((check for check in host.check if check.name == name), None)


def _replace_check(host: Host, new: Check) -> None:
    for check in [check for check in host.check if check.name == new.name]:
        host.check.remove(check)
    host.check.append(new)


def _begin(
    host: Host,
    project: Project,
    tells: MembershipRule,
    by: str,
    reason: str,
    world: World,
    now: Moment,
    *,
    ignore_cms: bool,
) -> None:
    assert tells.operation is not None
    kind: OperationKind = tells.operation
    operation = Operation(id=world.new_id(), kind=kind, stage=STAGE_REQUESTED, since_ms=now.ms, created=now.wall)
    operation.by, operation.reason, operation.ignore_cms = by or "somebody", reason, ignore_cms
    if not ignore_cms:
        operation.task.extend(tasks_for(world.installation, operation.id, 0, kind, project.cms))
    if tells.state:
        operation.after.CopyFrom(After(state=tells.state))
    host.operation.CopyFrom(operation)


def _own_group(name: str, by: str) -> str:
    """The group's name with its author in it: a CMS decides a group as one, and does not tell our authors apart."""
    return f"{name}-{blake2b(by.encode(), digest_size=4).hexdigest()}" if name else ""


def _adding(order: AddHostRequest) -> MembershipChange:
    if order.preordered:
        return MembershipChange.ADD_PREORDERED_PREPARE if order.prepare else MembershipChange.ADD_PREORDERED
    return MembershipChange.ADD


def _membership_rule(change: MembershipChange, state: HostState) -> MembershipRule:
    try:
        return membership_rule(change, state)
    except NotPossible as error:
        raise Refused(str(error)) from error


def _idle(book: WalleTransaction, name: str) -> Host:
    host = stored_record(book, HOST, name)
    check_listed(host)
    if host.HasField("operation"):
        raise Refused(f"host {name}: {NAMES[host.operation.kind]} is under way; cancel it or wait")
    if host.scenario:
        raise Refused(f"host {name}: it belongs to scenario {host.scenario}; end that first")
    return host


def _check_not_busy(book: WalleTransaction, host: Host) -> None:
    why = why_busy(book.get(RESTORED, host.project), host.name)
    if why:
        raise Refused(f"host {host.name}: {why}")
