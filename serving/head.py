"""The head of a request or of an answer, as HTTP/1.1 and HTTP/2 both make it and the transport reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Raw = Sequence[Sequence[Any]]  # names and values of all headers; more about each is ignored


class Head:
    """The head of a request or of an answer, whichever HTTP it came over."""

    __slots__ = ("authority", "form", "method", "named", "raw", "status", "target")

    def __init__(
        self, method: bytes, target: bytes, authority: bytes, raw: Raw, named: dict[bytes, bytes], status: int = 0
    ) -> None:
        self.method, self.target, self.authority = method, target, authority  # of a request
        self.raw, self.status = raw, status  # the status is that of an answer
        self.named = named  # the value of each header; the last, if a name repeats
        self.form: Any = None  # what a protocol has read from it; requests of one connection may share a head

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """All headers in order, without the pseudo-headers."""
        return [(one[0], one[1]) for one in self.raw if one[0][:1] != b":"]
