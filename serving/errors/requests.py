"""The request cannot succeed as it is, or not from this caller: change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serving.errors.base import Code, HqError


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request: path of the field, as in a field mask with indexes, and what is wrong with it."""

    field: str
    description: str


class InvalidRequest(HqError):
    """The request can never succeed as it is; `violations` name the fields."""

    code: ClassVar[Code] = "INVALID_ARGUMENT"
    reason = "INVALID_REQUEST"
    ours = False

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" if v.field else v.description for v in violations))
        self.violations = violations


def invalid(field: str, description: str) -> InvalidRequest:
    """An InvalidRequest with one violation."""
    return InvalidRequest(Violation(field, description))


class TooLarge(HqError):
    """The message or answer is over a limit of size."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "TOO_LARGE"
    ours = False

    def __init__(self, message: str, limit: str = "max_request_bytes") -> None:
        super().__init__(message)
        self.limit = limit


class StoreLimit(HqError):
    """Live data take as much of the store as they may: what adds to them is refused, what does not goes on."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "STORE_LIMIT"
    ours = False
    limit = "max_store_bytes"

    def __init__(self, used_bytes: int, most_bytes: int) -> None:
        super().__init__(
            f"instances take {used_bytes} bytes of the store, of {most_bytes} allowed (--max-store-bytes): "
            "delete some, or have an operator raise etcd's quota and then this limit"
        )
        self._used_bytes, self._most_bytes = used_bytes, most_bytes

    @property
    def metadata(self) -> dict[str, str]:
        return {"used_bytes": str(self._used_bytes), "max_bytes": str(self._most_bytes)}


class UnknownMethod(HqError):
    """There is no such call."""

    code: ClassVar[Code] = "UNIMPLEMENTED"
    reason = "UNKNOWN_METHOD"
    ours = False


class PermissionDenied(HqError):
    """The caller may not do this; the words say what is missing. `key`: what it was about, for the audit log."""

    code: ClassVar[Code] = "PERMISSION_DENIED"
    reason = "PERMISSION_DENIED"
    ours = False

    def __init__(self, message: str, *, key: str = "", needs: str = "") -> None:
        """`needs`: the roles of which one is missing, separated by commas."""
        super().__init__(message)
        self.key, self._needs = key, needs

    @property
    def metadata(self) -> dict[str, str]:
        return {"needs": self._needs} if self._needs else {}
