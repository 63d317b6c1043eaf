"""The calls of the inventory."""

from __future__ import annotations

from typing import Final

from control import Refused
from control.errors import EventRefused
from control.paging import page_of_records
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import Of, checked_reach, narrowed_reach
from serving.rights.rules import READ
from serving.rights.stored import encode_access
from walle.api.checking import check_host, check_imported_host, check_patterns, normalize_machine
from walle.api.submitting import submit
from walle.process.automaton import INVENTORY, WalleSupervisor
from walle.process.storing import Draft
from walle.reach import ORDER, may_import, who
from walle.work.inventory import differences, is_permitted
from walle.work.orders import import_hosts
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import Machine

MOST_AT_ONCE: Final = 50
_MOST_CONDITIONS: Final = 110  # each machine, its host, and each project once; etcd takes 128, the kit's own included


class Inventory:
    """The calls of walle.v1.WalleService about machines."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._walle = automaton

    def methods(self, service: ServiceTable) -> list[Method]:
        reach = self._walle.reaches
        return [
            service.unary(
                pb.ImportMachinesRequest, self._import, ORDER, checked_reach(Of.NODE, reach.check_machine_import)
            ),
            service.unary(
                pb.RemoveMachineRequest, self._remove, ORDER, checked_reach(Of.NODE, reach.check_machine_removal)
            ),
            service.unary(pb.ListMachinesRequest, self._list, READ, narrowed_reach(Of.NODE)),
        ]

    async def _import(self, request: pb.ImportMachinesRequest, call: Call) -> Answer:
        if not 0 < len(request.machines) <= MOST_AT_ONCE:
            raise invalid("machines", f"{len(request.machines)} machines: write 1 to {MOST_AT_ONCE}")
        conditions = 2 * len(request.machines) + len(projects := {one.project for one in request.hosts})
        if conditions > _MOST_CONDITIONS:
            what = f"{len(request.machines)} machines with hosts of {len(projects)} projects are too many for one call"
            raise invalid("machines", f"{what}: twice the machines and the projects may be {_MOST_CONDITIONS}")
        names = {machine.name for machine in request.machines}
        if len(names) < len(request.machines) or len({one.host for one in request.hosts}) < len(request.hosts):
            raise invalid("machines", "a machine is named twice")
        for number, machine in enumerate(request.machines):
            normalize_machine(f"machines[{number}].", machine)
        for number, host in enumerate(request.hosts):
            check_imported_host(f"hosts[{number}].", host, names)
        changes = self._changes(request, call)
        if not request.dry_run:
            for machine in request.machines:
                call.note_write(machine.name)
            await submit(self._walle, INVENTORY, pb.Order(import_machines=request), call)
        return MessageAnswer(pb.ImportMachinesResponse(changes=changes))

    def _changes(self, request: pb.ImportMachinesRequest, call: Call) -> list[pb.MachineChange]:
        """Return the changes that the order would make, from memory. Raises EventRefused, as the order would."""
        walle, known = self._walle, [*self._walle.machines.values()]
        draft, order = Draft(walle.controller), pb.Order(import_machines=request, by=who(call))
        order.access = encode_access(call.access)
        try:
            import_hosts(draft, order, walle.world, walle.ledger.now(), known)
        except Refused as error:
            raise EventRefused(str(error), error.code) from None
        projects = {one.host: one.project for one in request.hosts if one.host not in walle.hosts}
        changes = []
        for machine in request.machines:
            before, project = walle.machines.get(machine.name), projects.get(machine.name, "")
            found = differences(before or Machine(), machine)
            if before is None or found or project:
                one = pb.MachineChange(machine=machine.name, is_new=before is None, project=project, differences=found)
                changes.append(one)
        return changes

    async def _remove(self, request: pb.RemoveMachineRequest, call: Call) -> Answer:
        check_host("machine", request.machine)
        await submit(self._walle, INVENTORY, pb.Order(remove_machine=request), call)
        return MessageAnswer(pb.RemoveMachineResponse())

    def _list(self, request: pb.ListMachinesRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        owned = [one.id for one in self._walle.projects.values() if self._walle.reaches.owns(one.id, call.access)]
        names = check_patterns("names", request.names)

        def shows(machine: Machine) -> bool:
            if machine.name not in names or (request.project and not is_permitted(machine, request.project)):
                return False
            return may_import(machine.name, call.access) or any(is_permitted(machine, project) for project in owned)

        page, token = page_of_records(self._walle.machines, shows, request.page_size, request.page_token)
        shown = [one if may_import(one.name, call.access) else _without_addresses(one) for one in page]
        return MessageAnswer(pb.ListMachinesResponse(machines=shown, next_page_token=token))


def _without_addresses(machine: Machine) -> Machine:
    return Machine(name=machine.name, inventory=machine.inventory, location=machine.location, project=machine.project)
