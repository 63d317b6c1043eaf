"""Who calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a caller proved who it is."""

    CERTIFICATE = "certificate"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whose proof was verified. What it may do is looked up in the policy, never stored here.

    Attributes:
        name: the SPIFFE id of the certificate, or the subject of the ticket.
        expires_at: Unix time in seconds at which the proof ends; any allowance for skew is in it.
        key: which of the issuer's keys signed the ticket, by its contents; certificates have none.
    """

    name: str
    kind: Kind
    expires_at: float
    key: str = ""
