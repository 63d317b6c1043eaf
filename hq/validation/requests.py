"""Single values that many requests have."""

from hq.validation.faults import shown
from hq.validation.ids import check_bytes
from hqapi.requests import MAX_ITEMS
from serving.errors import Violation

MAX_REQUEST_ID_BYTES = 128


def check_request_id(value: str, field: str = "request_id") -> Violation | None:
    """Any printable word up to 128 bytes; empty: the request cannot be repeated."""
    if not value.isprintable():
        return Violation(field, f"{shown(value)} is not printable: use a word such as a random UUID")
    return check_bytes(value, field, MAX_REQUEST_ID_BYTES)


def check_page_size(value: int, field: str = "page_size") -> Violation | None:
    """0 asks for the default; one that is larger than the server's own limit is no fault."""
    return Violation(field, f"{value} is negative: use 0 for the default") if value < 0 else None


def check_item_count(count: int, field: str, limit: int = MAX_ITEMS) -> Violation | None:
    """At most so many items in one request."""
    if count <= limit:
        return None
    return Violation(field, f"{count} items are too many: send at most {limit} at once")
