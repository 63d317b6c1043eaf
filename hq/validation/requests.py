"""What a request asks for besides an instance: filters, field masks, pages, and operators' orders."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from hq.validation.faults import Faults, entry, member, printable_value, require
from hq.validation.typed_fields import is_map, note_enums
from hq.validation.values import (
    check_bytes,
    check_duration,
    check_id,
    check_label_key,
    check_label_value,
    check_line,
    check_words,
    is_id,
)
from hqapi.requests import MAX_FILTER_VALUES, MAX_ITEMS
from hqpb.v1.admin_pb2 import ConfirmEpochRequest, ForceGuardRequest, ReleaseGuardRequest, SuspendNodeRequest
from hqpb.v1.service_pb2 import LABEL_OPERATOR_IN, LABEL_OPERATOR_NOT_IN, InstanceFilter
from serving.errors import Violation

MAX_REQUEST_ID_BYTES = 128


def check_request_id(value: str, field: str = "request_id") -> Violation | None:
    """Any printable word up to 128 bytes; empty: the request cannot be repeated."""
    if not value.isprintable():
        return Violation(field, f"{printable_value(value)} is not printable: use a word such as a random UUID")
    return check_bytes(value, field, MAX_REQUEST_ID_BYTES)


def check_cluster(named: str, own: str, field: str) -> Violation | None:
    """A write must name this very cluster, or none."""
    if named in ("", own):
        return None
    return Violation(
        field, f"names cluster {printable_value(named)}, and this is {own}: remove it to write the instance here"
    )


def check_service(named: str, field: str = "service_id") -> Violation | None:
    """The service that a write is for; empty: it does not say."""
    return check_id(named, field) if named else None


def check_page_size(value: int, field: str = "page_size") -> Violation | None:
    """0 asks for the default; one larger than the server's own limit is allowed."""
    return Violation(field, f"{value} is negative: use 0 for the default") if value < 0 else None


def check_item_count(count: int, field: str, limit: int = MAX_ITEMS) -> Violation | None:
    """Check that a request has at most so many items."""
    if count <= limit:
        return None
    return Violation(field, f"{count} items are too many: send at most {limit} at once")


def check_filter(instance_filter: InstanceFilter, prefix: str = "filter") -> None:
    """A filter as FindInstances, CountInstances and WatchInstances take it.

    Raises:
        InvalidRequest: a value could never match, or an enum value is unknown.
    """
    faults = Faults()
    note_ids(faults, instance_filter, prefix)
    if (count := len(instance_filter.labels)) > _MOST_REQUIREMENTS:
        faults.add(member(prefix, "labels"), f"{count} are too many: use at most {_MOST_REQUIREMENTS} labels")
    for key, value in islice(instance_filter.labels.items(), _MOST_REQUIREMENTS):
        here = entry(member(prefix, "labels"), key)
        faults.note(check_label_key(key, here) or check_label_value(value, here))
    _note_label_requirements(faults, instance_filter, member(prefix, "label_requirement"))
    note_enums(faults, instance_filter, prefix)
    faults.raise_any()


_MOST_REQUIREMENTS: Final = 100  # each is compared with each instance
_VALUED: Final = (LABEL_OPERATOR_IN, LABEL_OPERATOR_NOT_IN)


def _note_label_requirements(faults: Faults, instance_filter: InstanceFilter, path: str) -> None:
    count = sum(len(one.value) for one in instance_filter.label_requirement)
    if count > MAX_FILTER_VALUES:  # in all requirements together: each value is looked at, and takes only three bytes
        faults.add(path, f"{count} values are too many: use at most {MAX_FILTER_VALUES} in all requirements")
        return
    for index, requirement in enumerate(instance_filter.label_requirement[: _MOST_REQUIREMENTS + 1]):
        here = f"{path}[{index}]"
        faults.note(check_label_key(requirement.key, f"{here}.key"))
        if not requirement.operator:
            faults.add(f"{here}.operator", "is missing: use LABEL_OPERATOR_IN, NOT_IN, EXISTS or DOES_NOT_EXIST")
        elif (requirement.operator in _VALUED) != bool(requirement.value):
            needs = "needs at least one for IN and NOT_IN" if requirement.operator in _VALUED else "must be empty"
            faults.add(f"{here}.value", f"{needs}: EXISTS and DOES_NOT_EXIST take any value")
        for number, value in enumerate(requirement.value):
            faults.note(check_label_value(value, f"{here}.value[{number}]"))
    if (count := len(instance_filter.label_requirement)) > _MOST_REQUIREMENTS:
        faults.add(path, f"{count} are too many: use at most {_MOST_REQUIREMENTS} requirements")


def note_ids(faults: Faults, instance_filter: InstanceFilter, path: str) -> None:
    lists = (
        ("instance_id", instance_filter.instance_id),
        ("service_id", instance_filter.service_id),
        ("node_name", instance_filter.node_name),
        ("revision_id", instance_filter.revision_id),
        ("cluster", instance_filter.cluster),
    )
    for field, values in lists:
        if not values:
            continue
        here = member(path, field)
        if len(values) > MAX_FILTER_VALUES:
            faults.add(here, f"{len(values)} values are too many: use at most {MAX_FILTER_VALUES}")
        for index, value in enumerate(values[:MAX_FILTER_VALUES]):
            if not is_id(value):
                faults.note(check_id(value, f"{here}[{index}]"))


class DescribedMessage(Protocol):
    """A message's DESCRIPTOR: there are several types of them, depending on the runtime."""

    @property
    def name(self) -> str: ...
    @property
    def fields_by_name(self) -> Mapping[str, Any]: ...


def check_field_mask(mask: FieldMask, descriptor: DescribedMessage, field: str = "field_mask") -> None:
    """Every path names a field of the message, or everything by `*`.

    Unlike google.protobuf.util, paths may lead through lists, to all their elements (`spec.revision.secret`).

    Raises:
        InvalidRequest: with the first unknown paths.
    """
    faults = Faults()
    for index, path in enumerate(mask.paths):
        if path != "*" and not is_path(path, descriptor):
            faults.add(f"{field}.paths[{index}]", f"{descriptor.name} has no {printable_value(path)}: correct it")
    faults.raise_any()


def is_path(path: str, descriptor: DescribedMessage) -> bool:
    """Whether a path names a field. Maps are named as a whole: no path leads into one."""
    here: Any = descriptor
    for name in path.split("."):
        field = here.fields_by_name.get(name) if here is not None else None
        if field is None:
            return False
        here = None if is_map(field) else field.message_type
    return True


MAX_GUARD_ORDER_S = 86_400
MAX_SUSPENSION_S = 7 * 86_400
MAX_REASON_BYTES = 1024
MAX_BY_BYTES = 253


def check_guard_order(order: ReleaseGuardRequest | ForceGuardRequest) -> None:
    """Check that an order lasts 24 h at most; an absent duration (or 0 s) means the default.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_duration(order.duration, "duration", MAX_GUARD_ORDER_S),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_confirmation(order: ConfirmEpochRequest) -> None:
    """Check the confirmation of a named epoch.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_line(order.epoch, "epoch", MAX_BY_BYTES),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_suspension(order: SuspendNodeRequest) -> None:
    """A suspension must name one node, and end within 7 days.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_id(order.node_name, "node_name"),
        check_end(order.duration) or check_duration(order.duration, "duration", MAX_SUSPENSION_S),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_end(duration: Duration) -> Violation | None:
    if duration.seconds or duration.nanos:
        return None
    return Violation("duration", "must be longer than 0 s")
