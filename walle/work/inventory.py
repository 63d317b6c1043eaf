"""The inventory: what names a machine, and which projects may add it. Each function is one transaction.

Wall-E resets machines at these addresses with accounts of its own, so an owner's word is not enough: only who may
import a machine says what its addresses are, and no two machines share one. Orders that change machines are handled one
after the other, so `known`, the machines in memory, has all earlier changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from control.errors import Refused
from serving.rights.patterns import Patterns
from walle.work.book import HOST, MACHINE, WalleTransaction
from wallepb.v1.host_pb2 import Host, Machine
from wallepb.v1.service_pb2 import AddHostRequest

MAX_DIGITS: Final = 20  # of 64 bits
HOW: Final = "an operator or admin whose scope covers it imports it (`walle inventory import`)"


def inventory_number(text: str) -> int:
    """The inventory number that a text is; 0: it is none."""
    return int(text) if len(text) <= MAX_DIGITS and text.isascii() and text.isdigit() else 0


def import_machines(
    book: WalleTransaction,
    machines: Iterable[Machine],
    known: Iterable[Machine],
    sees: Callable[[str], bool] = lambda name: True,
) -> None:
    """Store machines, and write the same into their hosts. Refused: one of them has what another machine has.

    `sees`: whether the author may be told of that other machine.
    """
    machines = list(machines)
    mine = {machine.name for machine in machines}
    owners = {claim: other.name for other in known if other.name not in mine for claim in _claims(other)}
    for machine in machines:
        for claim in _claims(machine):
            if owners.setdefault(claim, machine.name) != machine.name:
                other = owners[claim] if sees(owners[claim]) else "another machine"
                raise Refused(f"machine {machine.name}: {claim} belongs to {other}", "ALREADY_EXISTS")
        if book.get(MACHINE, machine.name) != machine:
            book.put(MACHINE, machine.name, machine)
        host = book.get(HOST, machine.name)
        if host is not None:
            book.put(HOST, host.name, identify(host, machine))


def differences(before: Machine, after: Machine) -> list[str]:
    """Differences by field, as `bmc: 10.7.0.1 -> 10.7.0.2`."""
    old, new = _texts(before), _texts(after)
    return [f"{name}: {old[name] or '-'} -> {new[name] or '-'}" for name in new if old[name] != new[name]]


def _texts(machine: Machine) -> dict[str, str]:
    place = machine.location
    return {
        "inventory": str(machine.inventory or ""),
        "bmc": machine.bmc,
        "address": " ".join(machine.address),
        "dc": place.dc,
        "rack": place.rack,
        "switch": place.switch,
        "project": " ".join(machine.project),
    }


def remove_machine(book: WalleTransaction, name: str) -> None:
    if book.get(MACHINE, name) is None:
        raise Refused(f"machine {name} is not in the inventory", "NOT_FOUND")
    if book.get(HOST, name) is not None:
        raise Refused(f"machine {name} is a host: remove that first (`walle hosts remove {name}`)")
    book.delete(MACHINE, name)


def machine_for(
    book: WalleTransaction,
    order: AddHostRequest,
    known: Iterable[Machine],
    sees: Callable[[str], bool],
    *,
    may_import: bool,
) -> Machine:
    """The machine that becomes a host of the order's project, to which it is permitted.

    `may_import`: what the order says of the machine is imported. `sees`: as in `import_machines`.
    """
    found = book.get(MACHINE, order.host) or Machine(name=order.host)
    if may_import:
        found.MergeFrom(Machine(inventory=order.inventory, bmc=order.bmc))
        if order.HasField("location"):
            found.location.MergeFrom(order.location)
        if order.address:
            del found.address[:]
            found.address.extend(order.address)
        if not is_permitted(found, order.project):
            found.project.append(order.project)
        import_machines(book, [found], known, sees)
    return found


def check_permitted(book: WalleTransaction, name: str, project: str, *, may_import: bool) -> None:
    """Refused: the inventory does not permit the machine to this project. `may_import`: permit it now."""
    machine = book.get(MACHINE, name)
    if machine is not None and may_import and not is_permitted(machine, project):
        machine.project.append(project)
        book.put(MACHINE, name, machine)
    if machine is None or not is_permitted(machine, project):
        raise Refused(f"host {name} is not in the inventory, or not for project {project}: {HOW}", "NOT_FOUND")


def is_permitted(machine: Machine, project: str) -> bool:
    return project in Patterns(machine.project)


def identify(host: Host, machine: Machine) -> Host:
    """Write into the host what the inventory says of it; returns it."""
    host.listed, host.inventory, host.bmc = True, machine.inventory, machine.bmc
    del host.address[:]
    host.address.extend(machine.address)
    host.location.CopyFrom(machine.location)
    return host


def check_listed(host: Host) -> None:
    """Refused: the host was added when nobody had to import it."""
    if not host.listed:
        raise Refused(f"host {host.name} is not in the inventory: {HOW}")


def _claims(machine: Machine) -> list[str]:
    """Return the values that only one machine may have; addresses as they are stored, without ports."""
    addresses = {_without_port(machine.bmc), *machine.address} - {""}
    return [f"address {one}" for one in sorted(addresses)] + (
        [f"inventory number {machine.inventory}"] if machine.inventory else []
    )


def _without_port(address: str) -> str:
    host, colon, _ = address.rpartition(":")
    return (host if colon and not address.endswith("]") else address).strip("[]")
