"""What a simulated fleet's healers talk to: the default CMS of each project, which may fail for days, and machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from tests.support.walle.truth import ALL_FAULTS, BAD_KERNEL, LASTS
from walle.approval.protocol import CmsAnswer, CmsFailure, CmsPort, Request, UnknownTask
from walle.executors.port import Executor, ExecutorFailure, PollResult, WorkProgress
from walle.work import default_cms as default
from walle.work.book import DEFAULT_TASKS, PROJECT
from wallepb.v1.host_pb2 import (
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    Host,
    OperationKind,
)
from wallepb.v1.project_pb2 import DefaultCmsTasks

if TYPE_CHECKING:
    from tests.support.walle.fleet import Fleet

T = TypeVar("T")
_AWAY: Final = CmsFailure("no answer within 10 s")
_PROVISIONAL: Final = CmsAnswer(VERDICT_OK, provisional=True)

# What a CMS does wrong, for as long as it lasts: by call, what it says instead of what is right.
CMS_FAULTS: Final[Mapping[str, Mapping[str, CmsAnswer | CmsFailure]]] = {
    "away": dict.fromkeys(("dry_run", "create", "poll", "confirm", "delete", "tasks"), _AWAY),
    "rejects dry runs": {"dry_run": CmsAnswer(VERDICT_REJECTED, "not today")},
    "takes no task": {"create": CmsFailure("HTTP 500")},
    "rejects tasks": {"create": CmsAnswer(VERDICT_REJECTED, "never"), "poll": CmsAnswer(VERDICT_REJECTED, "never")},
    "decides later": {
        "create": CmsAnswer(VERDICT_IN_PROCESS, "busy"),
        "poll": CmsAnswer(VERDICT_IN_PROCESS, "busy"),
    },
    "loses tasks": {"create": CmsAnswer(VERDICT_IN_PROCESS, "busy"), "poll": UnknownTask("no such task")},
    "takes its ok back": {
        "create": _PROVISIONAL,
        "poll": _PROVISIONAL,
        "confirm": CmsAnswer(VERDICT_IN_PROCESS, "no more"),
    },
    "confirms nothing": {"create": _PROVISIONAL, "poll": _PROVISIONAL, "confirm": CmsFailure("HTTP 500")},
    "deletes nothing": {"delete": CmsFailure("HTTP 500")},
}


class FleetParts:
    """The default CMS of each project, and machines that take their time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._executor = fleet, _Machines(fleet)

    def cms(self, project: str, url: str) -> CmsPort:
        return FleetCms(self._fleet, project)

    def executor(self, kind: OperationKind) -> Executor:
        return self._executor


class FleetCms:
    """The default CMS, as the process keeps it; or what its fault has it say."""

    name, version = "default", "v1.0"

    def __init__(self, fleet: Fleet, project: str) -> None:
        self._fleet, self._book, self._project = fleet, fleet.book, project

    async def dry_run(self, request: Request) -> CmsAnswer:
        return self._said("dry_run", request.hosts[0]) or default.dry_run()

    async def create(self, request: Request) -> CmsAnswer:
        said = self._said("create", request.hosts[0])
        right = self._change(lambda held: default.create(held, request, self._max_busy()))
        return said or right

    async def poll(self, task_id: str) -> CmsAnswer:
        said = self._said("poll")
        return said or self._change(lambda held: default.poll(held, task_id, self._max_busy()))

    async def confirm(self, task_id: str) -> CmsAnswer:
        return self._said("confirm", task_id) or await self.poll(task_id)

    async def delete(self, task_id: str) -> None:
        self._said("delete", task_id)
        self._change(lambda held: default.delete(held, task_id))

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        self._said("tasks")
        held = self._book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks()
        return {task.id: tuple(task.host) for task in held.task}

    def _said(self, call: str, about: str = "") -> CmsAnswer | None:
        """The answer, or exception, of its fault; None: it has none. `about`: the host or task of the request."""
        if about:
            self._fleet.auditor.count(f"{call} {about}")
        said = CMS_FAULTS.get(self._fleet.cms_faults.get(self._project, ""), {}).get(call)
        if isinstance(said, CmsFailure):
            raise said
        return said

    def _max_busy(self) -> int:
        project = self._book.get(PROJECT, self._project)
        assert project is not None
        return project.cms[0].max_busy_hosts

    def _change(self, decide: Callable[[DefaultCmsTasks], T]) -> T:
        held = self._book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks(project=self._project)
        result = decide(held)
        self._book.put(DEFAULT_TASKS, self._project, held)
        return result


class _Machines:
    """Work takes minutes; some of it fails to begin, and a dead management controller answers nothing."""

    name = "machines"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def _call(self, call: str, host: Host) -> None:
        self._fleet.auditor.count(f"{call} {host.name}")
        if host.name in self._fleet.truth.dead_bmc:
            raise ExecutorFailure("https://bmc: ConnectError: connection refused")

    async def progress_marker(self, host: Host) -> str:
        self._call("before", host)
        return "boot-1"

    async def begin(self, host: Host) -> str:
        self._call("begin", host)
        self._fleet.auditor.began(host, self._fleet.now().ms)
        if self._fleet.rng.random() < 0.02:
            raise ExecutorFailure("the management controller does not answer")
        kind = host.operation.kind
        self._fleet.truth.work[host.name] = (kind, self._fleet.minute + LASTS[kind])
        return "handle"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        truth = self._fleet.truth
        if host.name in truth.dead_bmc:
            self._call("look", host)
        if host.name not in truth.work:
            return PollResult(WorkProgress.NOT_BEGUN)
        kind, until = truth.work[host.name]
        if self._fleet.minute < until:
            return PollResult(WorkProgress.RUNNING)
        del truth.work[host.name]
        if kind in ALL_FAULTS.get(truth.fault.get(host.name, ""), ("", frozenset()))[1]:
            del truth.fault[host.name]
            truth.mended += 1
        if host.name in truth.bad_kernel and not host.operation.check:
            truth.fault[host.name] = BAD_KERNEL
        return PollResult(WorkProgress.DONE)
