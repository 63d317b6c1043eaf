"""The reach of Nanny's calls: all of a service. Checked before a call, and again where an order takes effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nannypb.v1 import service_pb2 as pb
from serving.errors import OutOfReach, invalid
from serving.rights.access import Access
from serving.rights.reach import Of, Reach, checked_reach
from serving.rights.rules import STOP, AuditLevel, Role, Rule

OWNERS: Final = (Role.UPLOADER, Role.ADMIN)
MANAGERS: Final = (Role.OPERATOR, Role.ADMIN)
ORDER: Final = Rule("change services", frozenset(OWNERS), AuditLevel.ORDERS)
DESCRIBE: Final = Rule("read descriptions", frozenset(OWNERS), AuditLevel.READS)


def rule_of_event(kind: str) -> tuple[Rule, tuple[Role, ...]]:
    """The rule of an order, by its field in `ServiceEvent`: owners change a service, managers pause and resume it."""
    return _MANAGED.get(kind, (ORDER, OWNERS))


_MANAGED: Final[Mapping[str, tuple[Rule, tuple[Role, ...]]]] = {"paused": (STOP, MANAGERS)}


def service_in(roles: tuple[Role, ...]) -> Reach:
    """The reach of calls for all of a service, in one of these roles; without access the service is "not found"."""

    def check(request: Any, access: Access) -> None:
        if not isinstance(request, pb.CreateServiceRequest):
            _check_visible(request, access)
        access.check_service(request.service_id, roles)

    return checked_reach(Of.SERVICE, check)


def _check_visible(request: Any, access: Access) -> None:
    """Raises OutOfReach: to this caller the service does not exist; InvalidRequest: none is named."""
    if not request.service_id:
        raise invalid("service_id", "is empty: name a service")
    if not access.covers_service(request.service_id):
        raise OutOfReach(f"there is no service {request.service_id}", key=request.service_id)


SEEN: Final = checked_reach(Of.SERVICE, _check_visible)
