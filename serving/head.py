"""The head of a request or of an answer, as HTTP/1.1 and HTTP/2 both make it and the transport reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

Raw = Sequence[Sequence[Any]]  # names and values of all headers; more about each is ignored

# Fields of RFC 9110 (and Origin, RFC 6454) that have one value: whoever is sent two could take either.
_SINGLE: Final = frozenset(
    (
        *(b"authorization", b"content-length", b"content-location", b"content-range", b"content-type", b"date"),
        *(b"from", b"host", b"if-modified-since", b"if-range", b"if-unmodified-since", b"max-forwards", b"origin"),
        *(b"proxy-authorization", b"range", b"referer", b"user-agent"),
    )
)


class Head:
    """The head of a request or of an answer, whichever HTTP it came over."""

    __slots__ = ("authority", "form", "method", "named", "raw", "status", "target")

    def __init__(
        self, method: bytes, target: bytes, authority: bytes, raw: Raw, named: dict[bytes, bytes], status: int = 0
    ) -> None:
        self.method, self.target, self.authority = method, target, authority  # of a request
        self.raw, self.status = raw, status  # the status is that of an answer
        self.named = named  # the value of each header; what `join_repeated` made of those that repeat
        self.form: Any = None  # what a protocol has read from it; requests of one connection may share a head

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """All headers in order, without the pseudo-headers."""
        return [(one[0], one[1]) for one in self.raw if one[0][:1] != b":"]


class AmbiguousHead(Exception):
    """Two readers could understand a head differently. `head`: with the last value of each field."""

    def __init__(self, text: str, head: Head) -> None:
        super().__init__(text)
        self.head = head


def join_repeated(head: Head) -> None:
    """Make one value of each header that came several times, as RFC 9113 (8.2.3) and RFC 9110 (5.3) say.

    The pieces of a cookie are joined by semicolons, all others by commas. Raises AmbiguousHead: a field that has one
    value has several.
    """
    values: dict[bytes, list[bytes]] = {}
    for name, value in head.fields:
        values.setdefault(name, []).append(value)
    for name, several in values.items():
        if len(several) > 1:
            if name in _SINGLE:
                raise AmbiguousHead(f"{len(several)} headers {name.decode()}: send one", head)
            head.named[name] = (b"; " if name == b"cookie" else b", ").join(several)
