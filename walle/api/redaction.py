"""What readers are not shown of hosts, projects and scenarios: addresses, and what others said of other services.

Where BMCs and CMSs are, what executors wrote and what CMSs answered is for who may repair a host
(`Reaches.may_address`): a CMS names in its answers who else holds a budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from walle.maintenance import tasks
from wallepb.v1.host_pb2 import Task
from wallepb.v1.project_pb2 import Project, Scenario
from wallepb.v1.service_pb2 import GetHostResponse, GetProjectResponse

A_CMS: Final = "a CMS"


def redact_host(shown: GetHostResponse, project: Project) -> None:
    """Take out of an answer what only those may see who repair the host."""
    host = shown.host
    host.ClearField("bmc")
    for doing in [getattr(host, lane) for lane in ("operation", "dns_operation") if host.HasField(lane)]:
        doing.ClearField("message")  # an executor's
        for name in ("output", "handle", "before"):
            doing.intent.ClearField(name)
        _redact_tasks([*doing.task, *doing.old_task])
    for over in host.history:
        over.ClearField("message")
        over.ClearField("output")
    for one in project.cms:
        if one.url:
            shown.decision = shown.decision.replace(one.url, A_CMS)
            shown.blocked = shown.blocked.replace(one.url, A_CMS)
            host.status_reason = host.status_reason.replace(one.url, A_CMS)


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
    """A copy without the stored grants of its author, which are for nobody."""
    copy = Scenario()
    copy.CopyFrom(scenario)
    copy.ClearField("access")
    return copy


def redact_scenario(scenario: Scenario) -> None:
    """Take out what CMSs answered about its hosts."""
    _redact_tasks(task for _, task in tasks(scenario))


def _redact_tasks(of: Iterable[Task]) -> None:
    for task in of:
        task.ClearField("message")
