"""Rules of well-formed messages: pure functions, no I/O, no knowledge of what is stored.

Functions on whole messages raise InvalidRequest with the first 20 violations, each named by its path as
clients see it (`instance.spec.revision[1].id`, `instance.meta.labels["engine"]`). Functions on single values
return the violation or None; `require` raises those. Only `clean_report` and `clean_times` change anything.
"""

from hq.validation.faults import MAX_VIOLATIONS, Faults, require
from hq.validation.instance import MAX_RECORD_BYTES, check_instance_update, check_new_instance, check_revision
from hq.validation.report import MAX_REPORT_BYTES, check_begin, check_report, clean_report
from hq.validation.requests import (
    check_cluster,
    check_confirmation,
    check_field_mask,
    check_filter,
    check_guard_order,
    check_item_count,
    check_page_size,
    check_request_id,
    check_service,
    check_suspension,
)
from hq.validation.typed_fields import check_enums, clean_times
from hq.validation.values import (
    MAX_DURATION_S,
    check_duration,
    check_id,
    check_label_key,
    check_label_value,
    check_name,
)

__all__ = [
    "MAX_DURATION_S",
    "MAX_RECORD_BYTES",
    "MAX_REPORT_BYTES",
    "MAX_VIOLATIONS",
    "Faults",
    "check_begin",
    "check_cluster",
    "check_confirmation",
    "check_duration",
    "check_enums",
    "check_field_mask",
    "check_filter",
    "check_guard_order",
    "check_id",
    "check_instance_update",
    "check_item_count",
    "check_label_key",
    "check_label_value",
    "check_name",
    "check_new_instance",
    "check_page_size",
    "check_report",
    "check_request_id",
    "check_revision",
    "check_service",
    "check_suspension",
    "clean_report",
    "clean_times",
    "require",
]
