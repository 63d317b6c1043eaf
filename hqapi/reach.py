"""The reach of the calls of hq.v1 at all their servers: replicas, the federation gateway, host agents."""

from __future__ import annotations

from typing import Any, Final

from serving.rights.access import Access
from serving.rights.reach import Of, checked_reach, narrowed_reach, on_each, stored_reach
from serving.rights.rules import Role

_AGENT: Final = (Role.AGENT,)
_SUSPENDERS: Final = (Role.OPERATOR, Role.HEALER)


def _own_node(request: Any, access: Access) -> None:
    access.check_node(request.node, _AGENT)


def _own_nodes(field: str) -> Any:
    def check(request: Any, access: Access) -> None:
        for i, item in enumerate(getattr(request, field)):  # one item of another node refuses all of them
            access.check_node(item.node, _AGENT, f"{field}[{i}].node")

    return check


def _check_fetch(request: Any, access: Access) -> None:
    if request.node and Role.UPLOADER not in access.grants:
        access.check_node(request.node, _AGENT)


def _check_filter(request: Any, access: Access) -> None:
    access.check_filter(request.filter.service_id, request.filter.node_name)


def _check_suspension(request: Any, access: Access) -> None:
    access.check_node(request.node_name, _SUSPENDERS, "node_name")


INSTANCE: Final = stored_reach(Of.INSTANCE)
INSTANCES: Final = on_each(Of.INSTANCE)
FILTER: Final = checked_reach(Of.INSTANCE, _check_filter)
FOUND: Final = narrowed_reach(Of.INSTANCE)
FETCHED: Final = stored_reach(Of.INSTANCE, _check_fetch)
OWN_NODE: Final = checked_reach(Of.NODE, _own_node)
BEGUN: Final = checked_reach(Of.NODE, _own_nodes("begin"))
REPORTED: Final = checked_reach(Of.NODE, _own_nodes("report"))
SUSPENDED: Final = checked_reach(Of.NODE, _check_suspension)
