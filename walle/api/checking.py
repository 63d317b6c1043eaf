"""Orders are checked here, before anything is stored: faults are named by field."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from control.amounts import Amount
from serving.durations import milliseconds
from serving.encoding.jsonio import MOST_ITEMS
from serving.errors import invalid
from serving.rights.patterns import Patterns
from walle.approval.protocol import DEFAULT
from walle.fuses.fuse import Automation
from walle.notices import why_not_notified
from walle.outgoing.destinations import AllowedEndpoint, BadAddress, Destinations, not_listed, parse_address, plain_ip
from walle.work.waves import NO_PROOF
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATE_FREE, HOST_STATUS_READY, Location, Machine
from wallepb.v1.project_pb2 import SCENARIO_KIND_SWITCH_MAINTENANCE, Cms, Notifications, Scheme

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")
_PROJECTS: Final = re.compile(r"[A-Za-z0-9*][A-Za-z0-9.*_-]{0,62}")
_CHECK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
MAX_CREDIT: Final = 100_000
MAX_CREDIT_S: Final = 7 * 86_400
MAX_AT_ONCE: Final = 100
MAX_PATTERNS: Final = 100
MAX_PLACE: Final = 100
MAX_SOURCE: Final = 256
MAX_RECIPIENTS: Final = 50
MAX_OWNER: Final = 1_000


def check_id(field: str, text: str) -> str:
    if not _ID.fullmatch(text):
        raise invalid(field, f"{text[:40]!r}: write 1 to 63 letters, digits, dots, dashes or underscores")
    return text


def check_host(field: str, text: str) -> str:
    if not _HOST.fullmatch(text):
        raise invalid(field, f"{text[:40]!r} is not a valid host name")
    return text


def check_patterns(field: str, words: Sequence[str]) -> Patterns:
    """Compile a list of patterns; none: everything matches. Raises InvalidRequest: too many to compare with records."""
    if len(words) > MAX_PATTERNS:
        raise invalid(field, f"{len(words)} patterns are too many: write at most {MAX_PATTERNS}")
    return Patterns(words or ["*"])


def check_names(schemes: Iterable[Scheme], owners: Iterable[str]) -> None:
    """Check the names of a project's checks and owners, which are stored with it and shown to others."""
    for scheme in schemes:
        check_counter("scheme", scheme.check)
    for owner in owners:
        if not 0 < len(owner) <= MAX_OWNER or not owner.isprintable():
            raise invalid("owners", f"{owner[:40]!r}: write 1 to {MAX_OWNER} printable characters")


def check_new_project(order: pb.CreateProjectRequest) -> None:
    if check_id("project.id", order.project.id) == "global":
        raise invalid("project.id", "`global` is reserved: it stands for all projects")
    _check_counters("project.limits", order.project.limits)
    check_names(order.project.scheme, order.project.owners)


def check_destinations(cms: Iterable[Cms], notifications: Notifications, destinations: Destinations) -> None:
    """Raises InvalidRequest: an address that the configuration does not list, or too many recipients."""
    for one in cms:
        if one.url != DEFAULT and _endpoint(one, destinations) is None:
            raise invalid("cms.url", f"{one.url[:200]}: {not_listed('cms', one.tvm_app_id)}")
    if (count := len(notifications.recipient)) > MAX_RECIPIENTS:
        raise invalid(
            "notifications.recipient", f"{count}; at most {MAX_RECIPIENTS} of a project: notify a mailing list"
        )
    for recipient in notifications.recipient:
        if why := why_not_notified(recipient.address, destinations):
            raise invalid("notifications.recipient.address", f"{recipient.address[:200]!r}: {why}")


def _endpoint(cms: Cms, destinations: Destinations) -> AllowedEndpoint | None:
    try:
        return destinations.cms_at(cms.url, cms.tvm_app_id)
    except BadAddress as error:
        raise invalid("cms.url", str(error)) from error


def check_switching(order: pb.SwitchAutomationRequest) -> None:
    if order.automation and order.automation not in list(Automation):
        raise invalid("automation", f"{order.automation!r}: write healing or dns")
    if not order.reason.strip():
        raise invalid("reason", "is missing: say why; it is recorded")
    if order.credits and not (order.on and order.project):
        raise invalid("credits", "can be given only when a project's automation is switched on")
    if bool(order.credits) != (order.credit_time.ToMilliseconds() > 0):
        raise invalid("credit_time", "credits need a time, and a time needs credits (--credit-time 1h --ssh 100)")
    if order.credit_time.ToSeconds() > MAX_CREDIT_S:
        raise invalid("credit_time", "at most 7d")
    for counter, amount in order.credits.items():
        check_counter("credits", counter)
        if not 0 < amount <= MAX_CREDIT:
            raise invalid(f"credits.{counter}", f"{amount}: write 1 to {MAX_CREDIT}")


def check_new_host(order: pb.AddHostRequest) -> None:
    check_host("host", order.host)
    check_id("project", order.project)
    if order.state not in (0, HOST_STATE_FREE, HOST_STATE_ASSIGNED):
        raise invalid("state", "write FREE or ASSIGNED")
    if order.preordered and order.ignore_cms:
        raise invalid("ignore_cms", "is not allowed for preorders")
    if order.prepare and not order.preordered:
        raise invalid("prepare", "is for preorders only; an assigned host is prepared anyway")
    _normalize_addresses("", order)


def check_imported_host(where: str, order: pb.AddHostRequest, machines: Collection[str]) -> None:
    """Check an order to make a machine of its call a host: it says only project, state, and whether a CMS is asked."""
    check_id(f"{where}project", order.project)
    if order.host not in machines:
        raise invalid(f"{where}host", f"{order.host[:40]!r} is not among `machines`")
    own = ("host", "project", "state", "ignore_cms")
    for field, _ in order.ListFields():
        if field.name not in own:
            raise invalid(
                f"{where}{field.name}", f"an imported host has {', '.join(own)} only: write it in its machine"
            )
    if order.state not in (0, HOST_STATE_FREE, HOST_STATE_ASSIGNED):
        raise invalid(f"{where}state", "write FREE or ASSIGNED")


def normalize_machine(where: str, machine: Machine) -> None:
    """Check a machine, and write its addresses as they are compared. `where`: comes before a field's name."""
    check_host(f"{where}name", machine.name)
    for project in machine.project:
        if not _PROJECTS.fullmatch(project):
            raise invalid(f"{where}project", f"{project[:40]!r} is not a valid id of a project, nor a pattern of ids")
    _normalize_addresses(where, machine)


def _normalize_addresses(where: str, given: Machine | pb.AddHostRequest) -> None:
    field, texts = "bmc", [*given.address]
    try:
        if given.bmc:
            given.bmc = str(parse_address(given.bmc))
        field = "address"
        del given.address[:]
        given.address.extend(str(plain_ip(ipaddress.ip_address(text))) for text in texts)
    except ValueError as error:
        raise invalid(f"{where}{field}", str(error)) from error
    if given.location == Location():
        given.ClearField("location")
    for name in (given.location.dc, given.location.rack, given.location.switch):
        if len(name) > MAX_PLACE or not name.isprintable():
            raise invalid(f"{where}location", f"{name[:40]!r}: write at most {MAX_PLACE} printable characters")


def check_change(order: pb.ChangeHostRequest) -> None:
    check_host("host", order.host)
    if order.change not in (pb.HOST_CHANGE_PREPARE, pb.HOST_CHANGE_MOVE, pb.HOST_CHANGE_REMOVE):
        raise invalid("change", "write PREPARE, MOVE or REMOVE")
    if (order.change == pb.HOST_CHANGE_MOVE) != bool(order.project):
        raise invalid("project", "is needed for MOVE, and for nothing else")
    if order.release and order.change != pb.HOST_CHANGE_MOVE:
        raise invalid("release", "is for MOVE only")


def check_state(order: pb.SetHostStateRequest) -> None:
    check_host("host", order.host)
    if order.status not in (0, HOST_STATUS_READY):
        raise invalid("status", "only READY can be set")
    if not order.state and not order.status:
        raise invalid("state", "write a state or a status")


def check_scenario(order: pb.AddScenarioRequest) -> None:
    check_id("scenario", order.scenario)
    if not order.kind:
        raise invalid("kind", "write SWITCH_MAINTENANCE, REBOOT or PROFILE")
    is_switch = order.kind == SCENARIO_KIND_SWITCH_MAINTENANCE
    if is_switch == bool(order.hosts or order.project) or is_switch != bool(order.switch):
        raise invalid("switch", "give the switch for SWITCH_MAINTENANCE, hosts or a project for other kinds")
    _check_selection(order)
    if order.at_once > MAX_AT_ONCE:
        raise invalid("at_once", f"at most {MAX_AT_ONCE}")
    for field in ("wave_size", "max_failures"):
        _check_amount(field, getattr(order, field))
    if order.by_domain not in ("", "rack", "switch", "dc"):
        raise invalid("by_domain", f"{order.by_domain[:40]!r}: write rack, switch or dc")
    if order.verify not in ("", NO_PROOF):
        raise invalid("verify", f"{order.verify[:40]!r}: write {NO_PROOF}, or nothing")


def _check_selection(order: pb.AddScenarioRequest) -> None:
    for name in order.hosts:
        check_host("hosts", name.replace("*", "x"))
    check_patterns("hosts", [name for name in order.hosts if "*" in name])
    if order.project:
        check_id("project", order.project)


def _check_amount(field: str, text: str) -> None:
    try:
        amount = Amount.parse(text) if text else None
    except ValueError as error:
        raise invalid(field, str(error)) from error
    if field == "wave_size" and amount is not None and amount.of(1) > MAX_AT_ONCE:
        raise invalid(field, f"at most {MAX_AT_ONCE}")


def check_steering(order: pb.SteerScenarioRequest) -> None:
    if order.steering not in (pb.STEERING_PAUSE, pb.STEERING_CONTINUE, pb.STEERING_RETRY):
        raise invalid("steering", "write PAUSE, CONTINUE or RETRY")
    if not order.reason.strip():
        raise invalid("reason", "is missing: say why; it is recorded")


def check_agreement(order: pb.AgreeScenarioRequest) -> None:
    check_id("scenario", order.scenario)
    check_id("project", order.project)
    if not order.reason.strip():
        raise invalid("reason", "is missing: say why; it is recorded")


def check_reports(request: pb.ReportChecksRequest) -> None:
    """Raises InvalidRequest: each report costs a line, a write and a look at all that its host's sources said."""
    names = Counter(report.host for report in request.hosts)
    if repeated := next((name for name, count in names.items() if count > 1), ""):
        raise invalid("hosts.host", f"{repeated[:40]!r} comes {names[repeated]} times: put its checks into one report")
    count = sum(len(report.check) for report in request.hosts)
    if count > MOST_ITEMS:
        raise invalid("hosts.check", f"{count} checks of all hosts are too many: send at most {MOST_ITEMS} at once")
    for report in request.hosts:
        check_checks(report)


def check_checks(report: pb.HostChecks) -> None:
    check_host("hosts.host", report.host)
    if len(report.boot_id) > MAX_SOURCE or not report.boot_id.isprintable():
        raise invalid("hosts.boot_id", f"{report.boot_id[:40]!r}: write at most {MAX_SOURCE} printable characters")
    if len(report.check) > 100:
        raise invalid("hosts.check", f"{len(report.check)} checks; at most 100 per host")
    for one in report.check:
        check_counter("hosts.check.name", one.name)
        milliseconds("hosts.check.starts_at", one.starts_at)
        for field, text in (("source", one.source), ("fingerprint", one.fingerprint)):
            if len(text) > MAX_SOURCE or not text.isprintable():
                raise invalid(f"hosts.check.{field}", f"{text[:40]!r}: write at most {MAX_SOURCE} printable characters")


def check_counter(field: str, name: str) -> None:
    if not _CHECK.fullmatch(name):
        raise invalid(field, f"{name[:40]!r} is not a valid name of a check")


def _check_counters(field: str, named: object) -> None:
    for name in named:  # type: ignore[attr-defined]
        check_counter(field, name)
