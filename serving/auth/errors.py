"""What a caller is told who may not."""

from __future__ import annotations

from typing import ClassVar

from serving.errors import Code, HqError, PermissionDenied, Retry


class Unauthenticated(HqError):
    """It is not known who calls; the words say what to bring, never what was brought."""

    code: ClassVar[Code] = "UNAUTHENTICATED"
    reason = "UNAUTHENTICATED"
    ours = False


class AuditUnavailable(Retry):
    """Orders of operators are taken only while it can be recorded who gave them; nothing was stored."""

    reason = "AUDIT_UNAVAILABLE"

    def __init__(self, fault: str) -> None:
        super().__init__(
            f"the audit log of this replica cannot be written ({fault}): fix it, or use another replica", 5.0
        )


class BadSecurity(Exception):
    """A setting of security, or a file that it names, cannot be used; str() names the flag and says why."""


__all__ = ["AuditUnavailable", "BadSecurity", "PermissionDenied", "Unauthenticated"]
