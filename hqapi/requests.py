"""Requests of hq.v1: what they are about, how much they may list, which cluster they name, errors of their items."""

from __future__ import annotations

from typing import Any, Final

from hqpb.v1 import service_pb2
from serving.calls.methods import Call
from serving.error_statuses import MAX_MESSAGE_BYTES, cut, grpc_code
from serving.errors import InvalidRequest, ServiceError, invalid

MAX_ITEMS: Final = 1_000  # of one ApplyInstances, BeginReportings or ReportStatuses
MAX_FILTER_VALUES: Final = 10_000  # of one field of a filter
CLUSTER_HEADER: Final = "x-hq-cluster"
REPEATED_HEADER: Final = "x-hq-repeated"  # of a write that was sent before, and may have been stored

_MAX_SUBJECTS: Final = 10


def requested_cluster(call: Call) -> str:
    """The cluster that the header names, or "": a federation gateway asks that one; a replica must be in it.

    Raises:
        InvalidRequest: the headers name two clusters.
    """
    named = dict.fromkeys(call.all_headers(CLUSTER_HEADER))
    if len(named) > 1:
        raise invalid(
            CLUSTER_HEADER, f"it names both {' and '.join(name[:100] for name in [*named][:2])}: send only one"
        )
    return "".join(named)


def subject(request: Any) -> str:
    """Return the subject of a request, for the audit log: the id of its instance, or the ids of the first ten."""
    if hasattr(request, "instance_id"):
        return str(request.instance_id)
    if hasattr(request, "id"):
        return str(request.id)
    if hasattr(request, "begin"):
        return " ".join(item.instance_id for item in request.begin[:_MAX_SUBJECTS])
    instances = getattr(request, "instance", ())
    listed = [instances] if hasattr(instances, "meta") else list(instances)
    return " ".join(one.meta.id for one in listed[:_MAX_SUBJECTS])


def item_error(error: ServiceError) -> service_pb2.ItemError:
    """The error of one item of a batch."""
    violations = error.violations if isinstance(error, InvalidRequest) else ()
    return service_pb2.ItemError(
        code=grpc_code(error).value[0],
        reason=error.reason,
        message=cut(str(error), MAX_MESSAGE_BYTES),
        field=cut(violations[0].field, 256) if violations else "",
        current_version=int(error.metadata.get("current_version", 0)),
    )
