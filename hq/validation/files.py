"""What lands in a revision's directory and in its processes' environment: paths, checksums, modes."""

import re

from hq.validation.faults import shown
from hq.validation.ids import check_line
from serving.errors import Violation

MAX_PATH_BYTES = 4096
MAX_URL_BYTES = 8192
MAX_MODE = 0o7777

is_checksum = re.compile(r"sha256:[0-9a-fA-F]{64}").fullmatch


def check_path(value: str, field: str) -> Violation | None:
    """A path that stays inside the revision's directory."""
    if value.startswith("/"):
        return Violation(field, f"{shown(value)} is absolute: paths start in the revision's directory")
    if ".." in value.split("/"):
        return Violation(field, f"{shown(value)} contains `..`: stay inside the revision's directory")
    return check_line(value, field, MAX_PATH_BYTES)


def check_url(value: str, field: str) -> Violation | None:
    """Any address; only the agent knows which schemes it can fetch."""
    return check_line(value, field, MAX_URL_BYTES)


def check_checksum(value: str, field: str) -> Violation | None:
    """Empty, or sha256 in hex."""
    if not value or is_checksum(value):
        return None
    return Violation(field, f"{shown(value)} is malformed: use `sha256:` and 64 hex digits, or nothing")


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
        return Violation(field, f"{shown(value)} is not a valid variable name: remove `=` and NUL")
    return None
