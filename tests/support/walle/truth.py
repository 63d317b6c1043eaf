"""What is really wrong with the machines of a simulated fleet, and what work mends it."""

from __future__ import annotations

from dataclasses import dataclass, field

from wallepb.v1.host_pb2 import (
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OperationKind,
)

# What breaks: the check that shows it, and the work that mends it (None: nothing does).
FAULTS: dict[str, tuple[str, frozenset[OperationKind]]] = {
    "hangs": ("UNREACHABLE", frozenset({OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY})),
    "broken image": ("ssh", frozenset({OPERATION_KIND_REDEPLOY})),
    "broken disk": ("disk", frozenset({OPERATION_KIND_CHANGE_DISK})),
    "wrong record": ("dns", frozenset({OPERATION_KIND_DNS_FIX})),
    "scrap": ("UNREACHABLE", frozenset()),
}
BAD_KERNEL = "bad kernel"
ALL_FAULTS = FAULTS | {BAD_KERNEL: ("UNREACHABLE", frozenset({OPERATION_KIND_REDEPLOY}))}  # what planned work breaks
LASTS = {
    OPERATION_KIND_REBOOT: 6,
    OPERATION_KIND_REDEPLOY: 40,
    OPERATION_KIND_CHANGE_DISK: 180,
    OPERATION_KIND_DNS_FIX: 1,
}


@dataclass(slots=True)
class Truth:
    """What is really wrong with the machines, and since when."""

    fault: dict[str, str] = field(default_factory=dict)
    dark: set[str] = field(default_factory=set)  # without power, together with their rack
    red: set[str] = field(default_factory=set)  # a check says so, and is wrong
    work: dict[str, tuple[OperationKind, int]] = field(default_factory=dict)  # until which minute
    dead_bmc: set[str] = field(default_factory=set)  # whose management controller answers nothing
    bad_kernel: set[str] = field(default_factory=set)  # which a planned reboot breaks
    blips: dict[str, int] = field(default_factory=dict)  # which come back by themselves, in which minute
    mended: int = 0

    def failing(self, host: str) -> set[str]:
        checks = {ALL_FAULTS[self.fault[host]][0]} if host in self.fault else set()
        is_gone = host in self.dark or host in self.blips
        return checks | ({"UNREACHABLE"} if is_gone else set()) | ({"ssh"} if host in self.red else set())
