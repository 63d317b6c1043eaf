"""People's orders about projects and switches. Each function is one transaction; Refused changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from control.errors import Refused
from control.records import Kind, M
from walle.approval.protocol import DEFAULT, VERSIONS
from walle.fuses.fuse import GLOBAL, Automation, Moment, counters_of, switch_off, switch_on
from walle.fuses.limits import DNS_FIXES, GLOBAL_DNS, BadLimit, check_limits
from walle.healing.incidents import BadBounds, check_bounds
from walle.healing.scheme import BadScheme, check_scheme
from walle.outgoing.destinations import BadAddress, one_spelling
from walle.work.book import DEFAULT_TASKS, FUSE, PROJECT, RESTORED, WalleTransaction, stored_record
from walle.work.default_cms import DEFAULT_MAX_BUSY_HOSTS
from wallepb.v1.project_pb2 import Cms, Credit, Fuse, Project
from wallepb.v1.service_pb2 import (
    CHANGE_MODE_ADD,
    CHANGE_MODE_REMOVE,
    CHANGE_MODE_REPLACE,
    CreateProjectRequest,
    DeleteProjectRequest,
    SwitchAutomationRequest,
    UpdateProjectRequest,
)


def create_project(book: WalleTransaction, order: CreateProjectRequest, by: str) -> None:
    if book.get(PROJECT, order.project.id) is not None:
        raise Refused(f"project {order.project.id} already exists", "ALREADY_EXISTS")
    project = Project()
    project.CopyFrom(order.project)
    if not project.cms:
        project.cms.append(Cms(url=DEFAULT, max_busy_hosts=DEFAULT_MAX_BUSY_HOSTS))
    if not project.owners and by:
        project.owners.append(by)
    _check(project, Project())
    book.put(PROJECT, project.id, project)


def update_project(book: WalleTransaction, order: UpdateProjectRequest, by: str) -> None:
    project, before = stored_record(book, PROJECT, order.project), Project()
    before.CopyFrom(project)
    _change_cms(project, order)
    for counter, limit in order.limits.items():
        if limit.pair:
            project.limits[counter].CopyFrom(limit)
        else:
            project.limits.pop(counter, None)
    if order.limits:
        project.limits_by, project.limits_reason = by, order.reason
    for is_set, name in ((order.set_scheme, "scheme"), (order.set_owners, "owners")):
        if is_set:
            project.ClearField(name)
            getattr(project, name).extend(getattr(order, name))
    _change_bounds(project, order)
    if order.set_notifications:
        project.notifications.CopyFrom(order.notifications)
    _check(project, before)
    book.put(PROJECT, project.id, project)


def delete_project(book: WalleTransaction, order: DeleteProjectRequest, hosts: Iterable[str]) -> None:
    """Delete a project. `hosts`: those that it has."""
    stored_record(book, PROJECT, order.project)
    if left := sorted(hosts):
        raise Refused(
            f"project {order.project} has {len(left)} hosts ({', '.join(left[:3])}): remove or move them first"
        )
    _delete(book, PROJECT, order.project)
    _delete(book, FUSE, order.project)
    _delete(book, DEFAULT_TASKS, order.project)
    _delete(book, RESTORED, order.project)


def switch_automation(book: WalleTransaction, order: SwitchAutomationRequest, by: str, now: Moment) -> None:
    """On: counters restart at zero, and credits are given. Off: nothing more begins."""
    fuse_id = order.project or GLOBAL
    if order.project:
        stored_record(book, PROJECT, order.project)
    fuse = book.get(FUSE, fuse_id) or Fuse(id=fuse_id)
    dns_counter = DNS_FIXES if order.project else GLOBAL_DNS
    for automation in [Automation(order.automation)] if order.automation else list(Automation):
        if order.on:
            mine = counters_of(fuse, automation, dns_counter) | _credited_counters(order, automation)
            fuse = switch_on(fuse, automation, mine, by, order.reason, now, _credits(order, automation, now))
        else:
            fuse = switch_off(fuse, automation, by, order.reason, now)
    book.put(FUSE, fuse_id, fuse)


def _delete(book: WalleTransaction, kind: Kind[M], record_id: str) -> None:
    if book.get(kind, record_id) is not None:
        book.delete(kind, record_id)


def _credited_counters(order: SwitchAutomationRequest, automation: Automation) -> set[str]:
    return {name for name in order.credits if (name == DNS_FIXES) == (automation is Automation.DNS)}


def _credits(order: SwitchAutomationRequest, automation: Automation, now: Moment) -> list[Credit]:
    until_ms = now.ms + order.credit_time.ToMilliseconds()
    mine = _credited_counters(order, automation)
    return [Credit(counter=name, left=n, until_ms=until_ms) for name, n in order.credits.items() if name in mine]


def _change_bounds(project: Project, order: UpdateProjectRequest) -> None:
    if order.HasField("max_repairs_per_host"):
        project.ClearField("max_repairs_per_host")
        if order.max_repairs_per_host.pair:
            project.max_repairs_per_host.CopyFrom(order.max_repairs_per_host)
    if order.HasField("incidents"):
        project.incidents.CopyFrom(order.incidents)


def _change_cms(project: Project, order: UpdateProjectRequest) -> None:
    named = {_spelling(cms.url) for cms in order.cms}
    if order.cms_mode == CHANGE_MODE_REPLACE:
        project.ClearField("cms")
    elif order.cms_mode == CHANGE_MODE_REMOVE:
        for cms in [cms for cms in project.cms if _spelling(cms.url) in named]:
            project.cms.remove(cms)
    if order.cms_mode in (CHANGE_MODE_REPLACE, CHANGE_MODE_ADD):
        project.cms.extend(order.cms)


# Each owner is compared for each host that is listed, each CMS asked about each operation. A project that had more
# before there were bounds may keep them, or drop some.
_MOST: Final = {"owners": 200, "cms": 20, "limits": 100, "scheme": 100}
_MOST_STEPS: Final = 20
_MOST_PERIODS: Final = 20  # each is counted for each repair, and for whoever looks at the limits
_LONGEST_OWNER: Final = 1_000


def _check_sizes(project: Project, before: Project) -> None:
    for name, most in _MOST.items():
        if (count := len(getattr(project, name))) > max(most, len(getattr(before, name))):
            raise Refused(f"{name}: {count} are too many: a project has at most {most}", "INVALID_ARGUMENT")
    _check_owners({*project.owners} - {*before.owners})
    if any(len(one.step) > _MOST_STEPS and one not in before.scheme for one in project.scheme):
        raise Refused(f"scheme: a check has at most {_MOST_STEPS} steps", "INVALID_ARGUMENT")
    for counter, limit in project.limits.items():
        if len(limit.pair) > _MOST_PERIODS and before.limits.get(counter) != limit:
            raise Refused(f"limits.{counter}: a limit has at most {_MOST_PERIODS} periods", "INVALID_ARGUMENT")


def _check(project: Project, before: Project) -> None:
    _check_sizes(project, before)
    stored = {cms.url for cms in before.cms}  # tasks name CMSs by these
    for cms in project.cms:
        _check_cms(cms)
        cms.url = cms.url if cms.url in stored else _spelling(cms.url)
    urls = [_spelling(cms.url) for cms in project.cms]
    if not urls:
        raise Refused("cms: a project needs at least one CMS; write `default` for Wall-E's own", "INVALID_ARGUMENT")
    if len(set(urls)) < len(urls):
        raise Refused("cms: at most one default CMS, and each URL once", "INVALID_ARGUMENT")
    try:
        check_limits(project)
        check_scheme(project.scheme)
        check_bounds(project.incidents)
    except (BadLimit, BadScheme, BadBounds) as error:
        raise Refused(str(error), "INVALID_ARGUMENT") from error


def _spelling(url: str) -> str:
    """The one spelling of a CMS's URL; a text that is no URL stays as it is."""
    try:
        return one_spelling(url)
    except BadAddress:
        return url


def _check_owners(new: Iterable[str]) -> None:
    if any(not 0 < len(one) <= _LONGEST_OWNER or not one.isprintable() for one in new):
        what = f"write identities of 1 to {_LONGEST_OWNER} printable characters"
        raise Refused(f"owners: {what}", "INVALID_ARGUMENT")


def _check_cms(cms: Cms) -> None:
    if cms.url == DEFAULT:
        cms.version = cms.version or "v1.0"
        if cms.max_busy_hosts < 1:
            raise Refused("cms: the default CMS needs max_busy_hosts of at least 1", "INVALID_ARGUMENT")
        return
    try:
        one_spelling(cms.url)
    except BadAddress as error:
        raise Refused(f"cms: {error}", "INVALID_ARGUMENT") from error
    if cms.version not in VERSIONS:
        raise Refused(
            f"cms {cms.url}: version is {cms.version!r}, not one of {', '.join(VERSIONS)}", "INVALID_ARGUMENT"
        )
