"""Which roles a call is for. Each call names one of these rules where its table of methods defines it.

A call without a rule has NOBODY's: with security on, everyone is refused. What lies within the reach of a role
(services, nodes, clusters) the policy says, and `access.py` compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final


class Role(StrEnum):
    """What a policy can make of an identity."""

    READER = "reader"
    AGENT = "agent"
    UPLOADER = "uploader"
    SCHEDULER = "scheduler"
    OPERATOR = "operator"
    ADMIN = "admin"


class Record(Enum):
    """What of the calls that are let in goes into the audit log; those that are denied all do."""

    NOTHING = auto()
    DENIALS = auto()  # and those of items of a batch, too
    WRITES = auto()
    ORDERS = auto()  # and unless it can be recorded, it is not done


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Whoever has one of the roles may call. Each is itself only, so that looking one up costs little.

    Attributes:
        name: as the audit log and error messages say it.
        is_open: everybody may, without saying who they are.
    """

    name: str
    roles: frozenset[Role] = frozenset()
    record: Record = Record.NOTHING
    is_open: bool = False


_EVERY_ROLE: Final = frozenset(Role)

NOBODY: Final = Rule("nobody")
OPEN: Final = Rule("open", is_open=True)
# Agents see their own node, uploaders their services, the others what their scope says. Never secret descriptors.
READ: Final = Rule("read", _EVERY_ROLE)
# Revisions with secret descriptors: the agent of the instance's node and the uploader of its service, nobody else.
FETCH: Final = Rule("fetch", frozenset({Role.AGENT, Role.UPLOADER}), Record.WRITES)
BEGIN: Final = Rule("begin", frozenset({Role.AGENT}), Record.WRITES)
# Not recorded unless denied: statuses and beats come thousands a second, and say themselves who heard them when.
REPORT: Final = Rule("report", frozenset({Role.AGENT}), Record.DENIALS)
# What agents read at their own listener, where nobody else shall take up room.
ATTEND: Final = Rule("read at the agents' listener", frozenset({Role.AGENT}))
ATTEND_FETCH: Final = Rule("fetch at the agents' listener", frozenset({Role.AGENT}), Record.WRITES)
UPLOAD: Final = Rule("upload", frozenset({Role.UPLOADER, Role.ADMIN}), Record.WRITES)
# An uploader or admin anything; a scheduler allocation and node_name, by mask.
UPDATE: Final = Rule("update", frozenset({Role.UPLOADER, Role.SCHEDULER, Role.ADMIN}), Record.WRITES)
INSPECT: Final = Rule("inspect", frozenset({Role.OPERATOR, Role.ADMIN}))
OPERATE: Final = Rule("operate", frozenset({Role.OPERATOR}), Record.ORDERS)
# Work on hosts and instances; how far it reaches is compared with what a task names.
LEAVE: Final = Rule("ask for leave", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), Record.WRITES)
BUDGET: Final = Rule("set budgets", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), Record.WRITES)
METRICS: Final = Rule("metrics", frozenset({Role.READER, Role.OPERATOR, Role.ADMIN}))

PAGES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "/": OPEN,
        "/livez": OPEN,
        "/readyz": OPEN,
        "/metrics": METRICS,
        "/sd/prometheus": READ,
    }
)
"""Rules of the pages beside the calls, by path; a page that is not here has NOBODY's."""
