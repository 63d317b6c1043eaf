"""Orders take effect here, one after the other per subject: which order is handled by which function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from control import Change, UnreadableEvent
from walle.fuses.fuse import Moment
from walle.work import orders, projects, restored, scenarios
from walle.work.book import World
from wallepb.v1.host_pb2 import Host
from wallepb.v1.service_pb2 import AddScenarioRequest, Order

GLOBAL: Final = "global"


class Handling:
    """`handle` is called by the kit at the acting process, again if its transaction failed."""

    def __init__(self, hosts: Mapping[str, Host], world: World, now: Callable[[], Moment]) -> None:
        self._hosts, self._world, self._now = hosts, world, now

    def handle(self, change: Change, subject: str, order: Order) -> None:
        what, by, world, now = order.WhichOneof("what"), order.by, self._world, self._now()
        handlers: dict[str | None, Callable[[], object]] = {
            "create_project": lambda: projects.create_project(change, order.create_project, by),
            "update_project": lambda: projects.update_project(change, order.update_project, by),
            "delete_project": lambda: projects.delete_project(
                change, order.delete_project, self._hosts_of(order.delete_project.project)
            ),
            "switch_automation": lambda: projects.switch_automation(change, order.switch_automation, by, now),
            "add_host": lambda: orders.add_host(change, order.add_host, by, world, now),
            "change_host": lambda: orders.change_host(change, order.change_host, by, world, now),
            "set_host_state": lambda: orders.set_host_state(change, order.set_host_state, by),
            "start_operation": lambda: orders.start_operation(change, order.start_operation, by, world, now),
            "cancel_operation": lambda: orders.cancel_operation(change, order.cancel_operation, by, now),
            "add_scenario": lambda: scenarios.add_scenario(
                change, order.add_scenario, list(self._hosts_behind(order.add_scenario)), by, world, now
            ),
            "agree_scenario": lambda: scenarios.agree_scenario(change, order.agree_scenario, by, now),
            "end_scenario": lambda: scenarios.end_scenario(change, order.end_scenario, by, now),
            "release_tasks": lambda: restored.release_tasks(change, order.release_tasks, by),
            "checks": lambda: orders.take_checks(change, order.checks, now),
        }
        if what not in handlers:
            raise UnreadableEvent(f"order {what} is of a kind that this version does not know: upgrade it")
        handlers[what]()

    def _hosts_of(self, project: str) -> Iterator[str]:
        return (host.name for host in self._hosts.values() if host.project == project)

    def _hosts_behind(self, order: AddScenarioRequest) -> Iterator[str]:
        """Those that the order names; else all behind its switch."""
        if order.hosts:
            yield from order.hosts
            return
        for host in self._hosts.values():
            if host.location.switch == order.switch and order.dc in ("", host.location.dc):
                yield host.name
