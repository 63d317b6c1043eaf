"""The default CMS of a project, over the kit: its tasks are one record, so that granting is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeVar

from walle.approval import default
from walle.approval.port import DEFAULT, Answer, Request
from walle.process.storing import Storing
from walle.work.book import DEFAULT_TASKS, PROJECT, RESTORED, Book
from walle.work.restored import busy_hosts
from wallepb.v1.project_pb2 import DefaultCmsTasks

T = TypeVar("T")


class DefaultCms:
    """Version v1.0 of the protocol, without a wire."""

    name: str = DEFAULT
    version: str = "v1.0"

    def __init__(self, storing: Storing, project: str) -> None:
        self._storing, self._project = storing, project

    async def dry_run(self, request: Request) -> Answer:
        return default.dry_run()

    async def create(self, request: Request) -> Answer:
        return await self._change(lambda held, most, others: default.create(held, request, most, others))

    async def poll(self, task_id: str) -> Answer:
        return await self._change(lambda held, most, others: default.poll(held, task_id, most, others))

    async def confirm(self, task_id: str) -> Answer:
        return await self.poll(task_id)

    async def delete(self, task_id: str) -> None:
        await self._change(lambda held, *_: default.delete(held, task_id))

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        return await self._change(lambda held, *_: {task.id: tuple(task.host) for task in held.task})

    async def _change(self, decide: Callable[[DefaultCmsTasks, int, Set[str]], T]) -> T:
        def inside(book: Book) -> T:
            project = book.get(PROJECT, self._project)
            setting = next((cms for cms in project.cms if cms.url == DEFAULT), None) if project else None
            held = book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks(project=self._project)
            others = busy_hosts(book.get(RESTORED, self._project))
            result = decide(held, setting.max_busy_hosts if setting else 0, others)
            book.put(DEFAULT_TASKS, self._project, held)
            return result

        return await self._storing.transact(inside)
