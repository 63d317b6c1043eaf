"""Leave from a CMS over cms.v1."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from cmspb.v1 import cms_pb2 as pb
from cmspb.v1 import cms_stubs
from hqclient import Credentials, HqApiError
from hqclient.errors import decode
from hqclient.pages import ask_pages
from nanny.rollout.views import Key
from nanny.world.leave import GRANTED, ApprovalAnswer, ApprovalRequest, Hold
from serving.clock import Clock

log = logging.getLogger(__name__)

ISSUER: Final = "nanny"
ACTION: Final = "roll-out"
_TIMEOUT_S: Final = 5.0
_HOLDS_FOR_S: Final = 2.0
_MOST_RETRY_S: Final = 30.0  # an ok that nobody asks for lapses, and a window may be opened before its time
_AWAY: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class CmsLeave:
    """Asks the processes of one CMS in turn; no answer means no leave, with that reason.

    Args:
        addresses: host:port of each of its processes.
    """

    def __init__(self, addresses: Sequence[str], clock: Clock, credentials: Credentials | None = None) -> None:
        self._clock = clock
        self._holds: dict[str, tuple[float, Sequence[Hold]]] = {}
        self.address = ",".join(addresses)
        self._credentials = credentials or Credentials()
        self._channels = {address: self._credentials.channel(address) for address in addresses}
        self._stubs = {address: cms_stubs.CmsServiceStub(channel) for address, channel in self._channels.items()}

    async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
        message = _task(
            wanted.task,
            wanted.instances,
            comment=f"{wanted.service}: {wanted.comment}",
            confirm=True,
            rollback=wanted.is_rollback,
            max_failures=wanted.max_failures,
            leave_out=sorted(wanted.leave_out),
        )
        if wanted.order_began_ms:
            message.order_begin_time.FromMilliseconds(wanted.order_began_ms)
        try:
            answer = await self._call(lambda stub: stub.CreateTask, pb.CreateTaskRequest(task=message))
        except HqApiError as error:
            if error.code is not grpc.StatusCode.ALREADY_EXISTS:
                return _error_answer(error)
            return await self._look(wanted.task)  # it was declared: the same work under another description
        found = _answer(answer.state)
        return found if found.granted else await self._with_budgets(wanted.task, found)

    async def _with_budgets(self, task: str, answer: ApprovalAnswer) -> ApprovalAnswer:
        """Add to a refusal which budgets caused it, and whether waiting is hopeless."""
        try:
            why = await self._call(lambda stub: stub.WhyTask, pb.WhyTaskRequest(id=task))
        except HqApiError as error:
            log.debug("%s: the CMS does not say what is in its way: %s", task, error.message)
            return answer
        too_much = (one for one in why.budget if one.needs > one.total - one.floor)
        most = min((max(0, one.total - one.floor) for one in too_much), default=0)
        blocking = [one for one in why.budget if one.blocks]
        is_hopeless = any(one.total <= one.floor for one in blocking)
        return replace(answer, at_most=most, by_budget=bool(blocking), is_hopeless=is_hopeless)

    async def confirm(self, task: str) -> ApprovalAnswer:
        try:
            answer = await self._call(lambda stub: stub.ConfirmTask, pb.ConfirmTaskRequest(id=task))
        except HqApiError as error:
            return _error_answer(error)
        return _answer(answer.state)

    async def give_back(self, task: str) -> bool:
        try:
            await self._call(lambda stub: stub.DeleteTask, pb.DeleteTaskRequest(id=task))
        except HqApiError as error:
            if error.code is not grpc.StatusCode.NOT_FOUND:
                log.warning("could not end task %s at the CMS, retrying: %s", task, error.message)
                return False
        return True

    async def holds_of_others(self, service: str) -> Sequence[Hold]:
        """Cached briefly; the last answer is used while the CMS is away, as it grants nothing then either."""
        at, holds = self._holds.get(service, (float("-inf"), ()))
        if self._clock.now() - at < _HOLDS_FOR_S:
            return holds
        try:
            request = pb.ListTasksRequest(service=service)
            answer = await ask_pages(lambda page: self._call(lambda stub: stub.ListTasks, page), request)
            granted = (one.task for one in answer.state if one.status == pb.TASK_STATUS_OK)
            holds = [_hold(task) for task in granted if task.issuer != ISSUER]
        except HqApiError as error:
            log.debug("%s: the CMS does not say who holds it: %s", service, error.message)
        self._holds[service] = self._clock.now(), holds
        return holds

    async def declare(self, running: Sequence[Hold]) -> bool:
        try:
            status = await self._call(lambda stub: stub.GetStatus, pb.GetStatusRequest())
            if ISSUER not in status.missing:
                return False
            for hold in running:
                await self._declare(hold)
            answer = await self._call(lambda stub: stub.EndDeclaration, pb.EndDeclarationRequest(issuer=ISSUER))
        except HqApiError as error:
            log.warning("could not declare the running work to the CMS, retrying: %s", error.message)
            return True
        others = f"; it waits for {', '.join(answer.missing)}" if answer.missing else ""
        log.warning("the CMS's store was restored or replaced: declared %d running batches%s", len(running), others)
        return True

    async def _declare(self, hold: Hold) -> None:
        """Raises HqApiError."""
        task = _task(hold.task, sorted(hold.instances), comment="was under way before", already_running=True)
        try:
            await self._call(lambda stub: stub.CreateTask, pb.CreateTaskRequest(task=task))
        except HqApiError as error:
            if error.code is not grpc.StatusCode.ALREADY_EXISTS:
                raise
            known = await self._call(lambda stub: stub.GetTask, pb.GetTaskRequest(id=hold.task))
            if known.state.status == pb.TASK_STATUS_OK:
                return
            await self._call(lambda stub: stub.DeleteTask, pb.DeleteTaskRequest(id=hold.task))
            await self._call(lambda stub: stub.CreateTask, pb.CreateTaskRequest(task=task))

    async def _look(self, task: str) -> ApprovalAnswer:
        try:
            answer = await self._call(lambda stub: stub.GetTask, pb.GetTaskRequest(id=task))
        except HqApiError as error:
            return _error_answer(error)
        return _answer(answer.state)

    async def close(self) -> None:
        """End the connections."""
        for channel in self._channels.values():
            await channel.close(None)

    async def _call(self, method: Callable[[Any], Any], request: Message) -> Any:
        """The answer of the first process that responds. Raises HqApiError, of the last one."""
        for number, (address, stub) in enumerate(self._stubs.items(), 1):
            try:
                metadata = tuple(self._credentials.metadata())
                return await method(stub)(request, timeout=_TIMEOUT_S, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _AWAY or number == len(self._stubs):
                    raise await self._credentials.explain(decode(error, address)) from None
        raise AssertionError("there is no address")


def _task(task: str, instances: Sequence[Key], **more: Any) -> pb.Task:
    refs = [pb.InstanceRef(location=location, id=name) for location, name in instances]
    return pb.Task(id=task, action=ACTION, instance=refs, issuer=ISSUER, **more)


def _hold(task: pb.Task) -> Hold:
    return Hold(task.id, frozenset((one.location, one.id) for one in task.instance), frozenset(task.host))


def _answer(state: pb.TaskState) -> ApprovalAnswer:
    if state.status == pb.TASK_STATUS_OK:
        return GRANTED
    retry_s = min(float(state.retry_after_seconds or 2), _MOST_RETRY_S)
    return ApprovalAnswer(granted=False, why=state.message, retry_s=retry_s)


def _error_answer(error: HqApiError) -> ApprovalAnswer:
    where = "the CMS does not answer" if error.code in _AWAY else "the CMS refuses"
    return ApprovalAnswer(granted=False, why=f"{where}: {error.message}", retry_s=2.0)
