"""The order of --sort-by: a column, or any field by its path. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hqctl.output.formats import as_dict
from hqctl.output.rows import readiness, revision
from hqpb.v1 import instance_pb2

Key = tuple[int, float, str]

_COLUMNS: dict[str, Callable[[instance_pb2.Instance], Any]] = {
    "id": lambda i: i.meta.id,
    "cluster": lambda i: i.meta.cluster,
    "service": lambda i: i.meta.service_id,
    "node": lambda i: i.spec.node_name,
    "ready": readiness,
    "revision": revision,
    "heartbeat": lambda i: i.status.last_heartbeat_time.ToNanoseconds() or None,
    "created": lambda i: i.meta.creation_time.ToNanoseconds() or None,
    "modified": lambda i: i.meta.modification_time.ToNanoseconds() or None,
    "version": lambda i: i.meta.version,
}
COLUMNS = tuple(_COLUMNS)


def ordered(instances: list[instance_pb2.Instance], by: str) -> list[instance_pb2.Instance]:
    """Instances by a column or path, and by id where that is the same; what has no value comes last."""
    value = _COLUMNS.get(by.lower()) or _by_path(by)
    return sorted(instances, key=lambda i: (_key(value(i)), i.meta.id, i.meta.cluster))


def _by_path(path: str) -> Callable[[instance_pb2.Instance], Any]:
    from hqctl.output.jsonpath import BadTemplate, values

    if "." not in path and "[" not in path:
        raise _bad(f"unknown column {path}; paths start with a dot, e.g. .meta.labels.tier")
    try:
        values(path.strip("{}"), {})
    except BadTemplate as fault:
        raise _bad(str(fault)) from None
    return lambda instance: next(iter(values(path.strip("{}"), as_dict(instance))), None)


def _bad(fault: str) -> click.BadParameter:
    return click.BadParameter(f"{fault}; columns are {', '.join(COLUMNS)}", param_hint="--sort-by")


def _key(value: Any) -> Key:
    """Numbers (64-bit ones are text in JSON) before text, nothing after both."""
    if value is None or value == "":
        return 2, 0.0, ""
    try:
        return 0, float(value), ""
    except (TypeError, ValueError):
        return 1, 0.0, str(value)
