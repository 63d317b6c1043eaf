"""Single values that callers choose: each rule returns the violation or None. No I/O."""

from __future__ import annotations

import re

from google.protobuf.duration_pb2 import Duration

from hq.validation.faults import printable_value
from serving.durations import span
from serving.errors import Violation

MAX_LABEL_VALUE_BYTES = 253
MAX_CONTAINERS = 1_000  # of a revision: one takes two bytes in a report, and each is looked at

# `.` and `..` would name other directories where an agent keeps files by id.
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
    """Check that the text has at most so many bytes of UTF-8."""
    size_bytes = len(value.encode())
    if size_bytes <= limit_bytes:
        return None
    return Violation(field, f"{size_bytes} bytes are too long: use at most {limit_bytes}")


def check_words(value: str, field: str, limit_bytes: int) -> Violation | None:
    """Text that is kept, shown and logged; may be empty, but not begin another line."""
    if has_control_characters(value):
        return Violation(field, f"{printable_value(value)} has control characters: remove them")
    return check_bytes(value, field, limit_bytes)


def check_line(value: str, field: str, limit_bytes: int) -> Violation | None:
    """One line of text that must not be empty."""
    if not value:
        return Violation(field, "is empty: set it")
    return check_words(value, field, limit_bytes)


def refusal(value: str, field: str, rule: str) -> Violation:
    return Violation(field, f"{printable_value(value)} is malformed: {rule}" if value else f"is empty: {rule}")


MAX_PATH_BYTES = 4096
MAX_URL_BYTES = 8192
MAX_MODE = 0o7777

is_target = re.compile(r"/[!-~]*").fullmatch
is_checksum = re.compile(r"sha256:[0-9a-fA-F]{64}").fullmatch


def check_path(value: str, field: str) -> Violation | None:
    """A path that stays inside the revision's directory."""
    if value.startswith("/"):
        return Violation(field, f"{printable_value(value)} is absolute: paths start in the revision's directory")
    if ".." in value.split("/"):
        return Violation(field, f"{printable_value(value)} contains `..`: stay inside the revision's directory")
    return check_line(value, field, MAX_PATH_BYTES)


def check_url(value: str, field: str) -> Violation | None:
    """Any address; only the agent knows which schemes it can fetch."""
    return check_line(value, field, MAX_URL_BYTES)


def check_target(value: str, field: str) -> Violation | None:
    """The path of a request, with or without a query; empty: the default. It must not begin another request."""
    if value and not is_target(value):
        return Violation(
            field, f"{printable_value(value)} is malformed: begin with /, and write others than ASCII as %XX"
        )
    return check_bytes(value, field, MAX_PATH_BYTES)


def check_checksum(value: str, field: str) -> Violation | None:
    """Empty, or sha256 in hex."""
    if not value or is_checksum(value):
        return None
    return Violation(field, f"{printable_value(value)} is malformed: use `sha256:` and 64 hex digits, or nothing")


def check_mode(value: int, field: str) -> Violation | None:
    """Permission bits."""
    if 0 <= value <= MAX_MODE:
        return None
    return Violation(field, f"0o{value:o} is not a valid file mode: use 0 to 0o7777 (4095)")


def check_variable(value: str, field: str) -> Violation | None:
    """The name of an environment variable."""
    if not value:
        return Violation(field, "an environment variable needs a name")
    if "=" in value or "\0" in value:
        return Violation(field, f"{printable_value(value)} is not a valid variable name: remove `=` and NUL")
    return None


MAX_DURATION_S = 30 * 86_400


def check_duration(value: Duration, field: str, limit_s: int = MAX_DURATION_S) -> Violation | None:
    """Check that a duration is from 0 to limit_s seconds, both included. An absent one reads as 0 s: the field's
    default.
    """
    if not 0 <= value.nanos <= 999_999_999 and value.seconds >= 0:
        return Violation(field, f"{value.nanos} nanos are out of range: use 0 to 999999999")
    if value.seconds < 0:
        return Violation(field, f"{value.seconds}s is negative: use 0s to {span(limit_s)}")
    if (value.seconds, value.nanos) > (limit_s, 0):
        return Violation(field, f"{span(value.seconds)} is too long: use at most {span(limit_s)}")
    return None
