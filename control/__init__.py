"""The kit that controllers share: records in memory, one process that acts, orders that take effect once.

A controller declares what it keeps and does, and runs the kit:

    TASK = Kind("task", cms_pb2.Task)

    class Cms:
        def __init__(self, controller: Controller) -> None:
            self.controller = controller
            self.tasks = controller.records(TASK)  # a mapping, read at any process without I/O
            self.orders = controller.events("task", cms_pb2.TaskEvent, self.handle)
            self.work = controller.reconcile("work", self.bring_about, keys=lambda: list(self.tasks))
            self.tasks.listen(self.work.trigger)

        async def create(self, task: cms_pb2.Task, request_id: str) -> None:  # at any process
            event = cms_pb2.TaskEvent(created=task)
            await self.orders.submit(task.id, event, request_id=request_id)

        def handle(self, change: Change, task_id: str, event: cms_pb2.TaskEvent) -> None:  # at the acting one, pure
            if change.get(TASK, task_id) is not None:
                raise Refused(f"task {task_id} already exists", "ALREADY_EXISTS")
            change.put(TASK, task_id, event.created)

        async def bring_about(self, task_id: str) -> float | None:  # at the acting one, once per key at a time
            change = self.controller.change()
            task = change.get(TASK, task_id)
            if task is None or task.state == DONE:
                return None
            task.state = RUNNING
            change.put(TASK, task_id, task)
            intent = await self.controller.intend(change)  # stored first,
            intent.check()  # looked at again with nothing awaited in between,
            await self.reboot(task)  # then done; what came of it is looked up in the world, here and after a restart
            return 5.0  # seconds until the next look

    controller = Controller(Config("/cms/v1/", "cms-1"), MemoryStore(), SystemClock(), random.SystemRandom())
    cms = Cms(controller)
    await controller.run()  # `controller.loaded` says when reads may be served

docs/controllers.md has the promises and what to do at a new epoch.
"""

from control.change import Change
from control.controller import Controller
from control.effects import EffectIntent, EmergencyStop
from control.errors import (
    EventRefused,
    MayNotBegin,
    NotActing,
    NotHandledYet,
    RecordChanged,
    Refused,
    RequestConflict,
    Unreadable,
    UnreadableEvent,
)
from control.events import Events
from control.following import ControlConfig
from control.reconcile import Reconciler
from control.records import Kind, Records, Stored

__all__ = [
    "Change",
    "ControlConfig",
    "Controller",
    "EffectIntent",
    "EmergencyStop",
    "EventRefused",
    "Events",
    "Kind",
    "MayNotBegin",
    "NotActing",
    "NotHandledYet",
    "Reconciler",
    "RecordChanged",
    "Records",
    "Refused",
    "RequestConflict",
    "Stored",
    "Unreadable",
    "UnreadableEvent",
]
