"""Names that callers choose: of instances, services, revisions, nodes, ports, disks, and labels."""

import re

from hq.validation.faults import shown
from serving.errors import Violation

MAX_LABEL_VALUE_BYTES = 253

# `.` and `..` would be other directories than their own wherever an agent keeps files by id.
is_id = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,253}").fullmatch
is_name = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,63}").fullmatch
is_label_key = re.compile(r"[A-Za-z0-9._:@/-]{1,253}").fullmatch
has_control_characters = re.compile(r"[\x00-\x1f\x7f-\x9f]").search

ID_RULE = "use 1 to 253 letters, digits and ._:@- (but neither . nor ..)"
NAME_RULE = "use 1 to 63 letters, digits and ._:@- (but neither . nor ..)"
LABEL_KEY_RULE = "use 1 to 253 letters, digits and ._:@-/"


def check_id(value: str, field: str) -> Violation | None:
    """An id of an instance, service, revision, node or cluster."""
    return None if is_id(value) else refusal(value, field, ID_RULE)


def check_name(value: str, field: str) -> Violation | None:
    """A name inside an instance: of a port, disk, container, volume or secret."""
    return None if is_name(value) else refusal(value, field, NAME_RULE)


def check_label_key(value: str, field: str) -> Violation | None:
    """The key of a label or annotation."""
    return None if is_label_key(value) else refusal(value, field, LABEL_KEY_RULE)


def check_label_value(value: str, field: str) -> Violation | None:
    """May be empty and in any script, up to 253 bytes of UTF-8 without control characters."""
    return check_words(value, field, MAX_LABEL_VALUE_BYTES)


def check_bytes(value: str, field: str, limit_bytes: int) -> Violation | None:
    """At most so many bytes of UTF-8."""
    size_bytes = len(value.encode())
    if size_bytes <= limit_bytes:
        return None
    return Violation(field, f"{size_bytes} bytes are too long: use at most {limit_bytes}")


def check_words(value: str, field: str, limit_bytes: int) -> Violation | None:
    """Text that is kept, shown and logged; may be empty, but not begin another line."""
    if has_control_characters(value):
        return Violation(field, f"{shown(value)} has control characters: remove them")
    return check_bytes(value, field, limit_bytes)


def check_line(value: str, field: str, limit_bytes: int) -> Violation | None:
    """One line of text that must not be empty."""
    if not value:
        return Violation(field, "is empty: set it")
    return check_words(value, field, limit_bytes)


def refusal(value: str, field: str, rule: str) -> Violation:
    return Violation(field, f"{shown(value)} is malformed: {rule}" if value else f"is empty: {rule}")
