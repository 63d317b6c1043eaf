"""Hides from readers parts of hosts, projects and scenarios: addresses, and texts about other services.

Where BMCs and CMSs are, what executors wrote and what CMSs answered is for who may repair a host
(`Reaches.may_address`): a CMS names in its answers who else holds a budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from walle.healing.decision import REJECTED
from walle.maintenance import tasks
from wallepb.v1.host_pb2 import HOST_STATUS_DEAD, Host, Task
from wallepb.v1.project_pb2 import Project, Scenario
from wallepb.v1.service_pb2 import GetProjectResponse

A_CMS: Final = "a CMS"


def redacted_host(host: Host) -> Host:
    """A copy without what only those who may repair the host see; decisions made from it do not name that, either."""
    shown = Host()
    shown.CopyFrom(host)
    shown.ClearField("bmc")
    for doing in [getattr(shown, lane) for lane in ("operation", "dns_operation") if shown.HasField(lane)]:
        doing.ClearField("message")  # an executor wrote it
        for name in ("output", "handle", "before"):
            doing.intent.ClearField(name)
        _redact_tasks([*doing.task, *doing.old_task])
    for over in shown.history:
        over.ClearField("message")
        over.ClearField("output")
    if shown.status == HOST_STATUS_DEAD and ": " in shown.status_reason:  # after the colon are a CMS's words
        shown.status_reason = f"{shown.status_reason.partition(': ')[0]}: {REJECTED}"
    return shown


def hide_cmss(text: str, project: Project) -> str:
    """The text without the addresses of the project's CMSs."""
    for one in project.cms:
        text = text.replace(one.url, A_CMS) if one.url else text
    return text


def redact_project(shown: GetProjectResponse) -> None:
    """Take out the addresses of CMSs and webhooks."""
    for one in shown.project.cms:
        one.ClearField("url")
    for recipient in shown.project.notifications.recipient:
        recipient.ClearField("address")
    shown.restored.ClearField("listed")
    for task in shown.restored.task:
        task.ClearField("cms")


def without_grants(scenario: Scenario) -> Scenario:
    """A copy without its author's stored grants, which nobody is shown, and without how it is stored."""
    copy = Scenario()
    copy.CopyFrom(scenario)
    copy.ClearField("access")
    copy.ClearField("host_records")
    return copy


def redact_scenario(scenario: Scenario) -> None:
    """Take out what CMSs and executors answered about its hosts, and where these CMSs are."""
    scenario.ClearField("message")
    _redact_tasks(task for _, task in tasks(scenario))
    for host in scenario.host:
        host.ClearField("problem")
        host.by_hand[:] = [A_CMS for _ in host.by_hand]
        for agreed in host.agreed:
            agreed.cms = A_CMS


def _redact_tasks(of: Iterable[Task]) -> None:
    for task in of:
        task.cms = A_CMS
        task.ClearField("message")
