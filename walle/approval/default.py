"""The default CMS: any operation with any host of the project, but at most `max_busy_hosts` hosts at a time. Pure.

It is a CMS of version v1.0 whose tasks lie in one record per project, so that granting is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set
from typing import Final

from walle.approval.port import Answer, CmsFailure, Request, UnknownTask
from wallepb.v1.host_pb2 import VERDICT_IN_PROCESS, VERDICT_OK
from wallepb.v1.project_pb2 import DefaultCmsTask, DefaultCmsTasks

DEFAULT_MAX_BUSY_HOSTS: Final = 5


def dry_run() -> Answer:
    """It never rejects."""
    return Answer(VERDICT_OK)


def create(held: DefaultCmsTasks, request: Request, max_busy_hosts: int, others: Set[str] = frozenset()) -> Answer:
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
        raise CmsFailure(f"task {request.id} exists with another content")
    return poll(held, request.id, max_busy_hosts, others)


def poll(held: DefaultCmsTasks, task_id: str, max_busy_hosts: int, others: Set[str] = frozenset()) -> Answer:
    """The verdict now; grants in the order of creation what there is room for. Raises UnknownTask."""
    task = _find(held, task_id)
    if task is None:
        raise UnknownTask(f"task {task_id} does not exist")
    _grant(held, max_busy_hosts, others)
    if task.granted:
        return Answer(VERDICT_OK)
    busy = sorted(_busy(held) | others)
    shown = ", ".join(busy[:10]) + ("..." if len(busy) > 10 else "")
    return Answer(VERDICT_IN_PROCESS, f"{len(busy)} of {max_busy_hosts} hosts are busy: {shown}")


def delete(held: DefaultCmsTasks, task_id: str) -> None:
    task = _find(held, task_id)
    if task is not None:
        held.task.remove(task)


def _grant(held: DefaultCmsTasks, max_busy_hosts: int, others: Set[str]) -> None:
    for task in held.task:
        after = _busy(held) | others | set(task.host)
        if not task.granted:
            # First come, first served: a task for many hosts is not overtaken for ever by tasks for one.
            if len(after) > max_busy_hosts and not set(task.host) <= _busy(held):
                return
            task.granted = True


def _busy(held: DefaultCmsTasks) -> set[str]:
    return {host for task in held.task if task.granted for host in task.host}


def _find(held: DefaultCmsTasks, task_id: str) -> DefaultCmsTask | None:
    return next((task for task in held.task if task.id == task_id), None)
