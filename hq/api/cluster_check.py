"""Callers may name the cluster they mean, as they must at a gateway; an order for another cluster is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from hqapi.requests import CLUSTER_HEADER, requested_cluster
from hqapi.rules import SUSPEND, UPDATE, UPLOAD
from serving.calls.methods import Answer, Call, Method, UnaryMethod, maybe_await
from serving.errors import invalid
from serving.rights.rules import OPERATE

# Calls that would change the wrong cluster before anybody notices; the answers of other calls name their cluster.
_ORDERS = (UPLOAD, UPDATE, OPERATE, SUSPEND)


def with_cluster_check(methods: Iterable[Method], cluster: str) -> list[Method]:
    """The same methods; writes and operators' orders raise InvalidRequest if a header names another cluster."""
    return [_method_with_check(method, cluster) if method.rule in _ORDERS else method for method in methods]


def _method_with_check(method: Method, cluster: str) -> Method:
    assert isinstance(method, UnaryMethod)
    run: Callable[[Any, Call], Answer | Awaitable[Answer]] = method.run

    async def run_checked(request: Any, call: Call) -> Answer:
        requested = requested_cluster(call)
        if requested and requested != cluster:
            raise invalid(
                CLUSTER_HEADER,
                f"this replica belongs to cluster {cluster}; send the call to a replica of {requested[:100]}",
            )
        return await maybe_await(run(request, call))

    return replace(method, run=run_checked)
