"""Which roles a call is for. Each call names one of these rules where its table of methods defines it.

A call without a rule has NOBODY's: with security on, everyone is refused. The policy says what is within reach
of a role (services, nodes, clusters), and `access.py` compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final


class Role(StrEnum):
    """The roles that a policy can give to an identity."""

    READER = "reader"
    AGENT = "agent"
    UPLOADER = "uploader"
    SCHEDULER = "scheduler"
    MONITOR = "monitor"
    HEALER = "healer"
    OPERATOR = "operator"
    ADMIN = "admin"


class AuditLevel(Enum):
    """Which of the calls that are let in go into the audit log; those that are denied all do."""

    NOTHING = auto()
    DENIALS = auto()  # only denied items of a batch, and reports that changed something
    READS = auto()  # all; they go on while they cannot be recorded: reads, and what agents must be able to say
    WRITES = auto()  # all; they are refused while they cannot be recorded
    ORDERS = auto()  # as WRITES, and recorded before, too; not refused if it only stops something


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Callers with one of the roles may call. Compared by identity, so that looking one up costs little.

    Attributes:
        name: as the audit log and error messages say it.
        is_open: everybody may, without authentication.
    """

    name: str
    roles: frozenset[Role] = frozenset()
    record: AuditLevel = AuditLevel.NOTHING
    is_open: bool = False


_EVERY_ROLE: Final = frozenset(Role) - {Role.MONITOR}  # which reports checks, and nothing else

NOBODY: Final = Rule("call this method")
OPEN: Final = Rule("open", is_open=True)
READ: Final = Rule("read", _EVERY_ROLE)
INSPECT: Final = Rule("inspect", frozenset({Role.OPERATOR, Role.ADMIN}))
STOP: Final = Rule("stop or start what works by itself", INSPECT.roles, AuditLevel.ORDERS)
OPERATE: Final = Rule("use operator commands", frozenset({Role.OPERATOR}), AuditLevel.ORDERS)
# Work on hosts and instances; how far it reaches is compared with what a task names.
LEAVE: Final = Rule(
    "ask for approval", frozenset({Role.UPLOADER, Role.HEALER, Role.OPERATOR, Role.ADMIN}), AuditLevel.ORDERS
)
LOCK: Final = Rule("lock a node for its reboot", LEAVE.roles | {Role.AGENT}, AuditLevel.ORDERS)
POLL: Final = Rule("poll approvals", LEAVE.roles, AuditLevel.DENIALS)
BUDGET: Final = Rule("set budgets", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), AuditLevel.ORDERS)
READ_METRICS: Final = Rule("read metrics", frozenset({Role.READER, Role.OPERATOR, Role.ADMIN}))
