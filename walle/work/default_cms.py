"""The default CMS: any operation with any host of the project, but at most `max_busy_hosts` hosts at a time.

It is a CMS of version v1.0 whose tasks are in one record per project, so that granting is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Set
from typing import Final, Protocol, TypeVar

from walle.approval.protocol import DEFAULT, CmsAnswer, CmsFailure, Request, UnknownTask
from walle.work.book import DEFAULT_TASKS, PROJECT, RESTORED, WalleTransaction
from walle.work.restored import busy_hosts
from wallepb.v1.host_pb2 import VERDICT_IN_PROCESS, VERDICT_OK
from wallepb.v1.project_pb2 import DefaultCmsTask, DefaultCmsTasks

DEFAULT_MAX_BUSY_HOSTS: Final = 5


def dry_run() -> CmsAnswer:
    """The answer to any dry run: the default CMS never rejects."""
    return CmsAnswer(VERDICT_OK)


def create(held: DefaultCmsTasks, request: Request, max_busy_hosts: int, others: Set[str] = frozenset()) -> CmsAnswer:
    """Add the task to `held`, and decide. Raises CmsFailure: the same id with another content.

    `others`: hosts that are busy without a task here.
    """
    content = hashlib.sha256(repr((request.hosts, request.action)).encode()).hexdigest()[:16]
    known = _find(held, request.id)
    if known is None:
        held.task.append(
            DefaultCmsTask(
                id=request.id, host=request.hosts, action=request.action, granted=request.is_running, content=content
            )
        )
    elif known.content != content:
        raise CmsFailure(f"task {request.id} already exists with different content")
    return poll(held, request.id, max_busy_hosts, others)


def poll(held: DefaultCmsTasks, task_id: str, max_busy_hosts: int, others: Set[str] = frozenset()) -> CmsAnswer:
    """The current verdict; grants in the order of creation, as far as there is room. Raises UnknownTask."""
    task = _find(held, task_id)
    if task is None:
        raise UnknownTask(f"task {task_id} does not exist")
    _grant(held, max_busy_hosts, others)
    if task.granted:
        return CmsAnswer(VERDICT_OK)
    busy = sorted(_busy(held) | others)
    shown = ", ".join(busy[:10]) + ("..." if len(busy) > 10 else "")
    return CmsAnswer(VERDICT_IN_PROCESS, f"{len(busy)} of {max_busy_hosts} hosts are busy: {shown}")


def delete(held: DefaultCmsTasks, task_id: str) -> None:
    task = _find(held, task_id)
    if task is not None:
        held.task.remove(task)


def _grant(held: DefaultCmsTasks, max_busy_hosts: int, others: Set[str]) -> None:
    for task in held.task:
        after = _busy(held) | others | set(task.host)
        if not task.granted:
            # First come, first served: a task for many hosts must not be overtaken for ever by tasks for one.
            if len(after) > max_busy_hosts and not set(task.host) <= _busy(held):
                return
            task.granted = True


def _busy(held: DefaultCmsTasks) -> set[str]:
    return {host for task in held.task if task.granted for host in task.host}


def _find(held: DefaultCmsTasks, task_id: str) -> DefaultCmsTask | None:
    return next((task for task in held.task if task.id == task_id), None)


T = TypeVar("T")


class Transactions(Protocol):
    """Transactions over the records."""

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T: ...


class DefaultCms:
    """Version v1.0 of the protocol, without a wire."""

    name: str = DEFAULT
    version: str = "v1.0"

    def __init__(self, storing: Transactions, project: str) -> None:
        self._storing, self._project = storing, project

    async def dry_run(self, request: Request) -> CmsAnswer:
        return dry_run()

    async def create(self, request: Request) -> CmsAnswer:
        return await self._change(lambda held, most, others: create(held, request, most, others))

    async def poll(self, task_id: str) -> CmsAnswer:
        return await self._change(lambda held, most, others: poll(held, task_id, most, others))

    async def confirm(self, task_id: str) -> CmsAnswer:
        return await self.poll(task_id)

    async def delete(self, task_id: str) -> None:
        await self._change(lambda held, *_: delete(held, task_id))

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        return await self._change(lambda held, *_: {task.id: tuple(task.host) for task in held.task})

    async def _change(self, decide: Callable[[DefaultCmsTasks, int, Set[str]], T]) -> T:
        def inside(book: WalleTransaction) -> T:
            project = book.get(PROJECT, self._project)
            setting = next((cms for cms in project.cms if cms.url == DEFAULT), None) if project else None
            held = book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks(project=self._project)
            others = busy_hosts(book.get(RESTORED, self._project))
            result = decide(held, setting.max_busy_hosts if setting else 0, others)
            book.put(DEFAULT_TASKS, self._project, held)
            return result

        return await self._storing.transact(inside)
