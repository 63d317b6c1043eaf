"""Which encodings one exchange over HTTP speaks: read from Content-Type, Accept and the encoding headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from serving.protocol_errors import UnsupportedEncoding, UnsupportedMediaType

_MEMORY: Final = 1_000  # remembered pairs of headers; clients send a handful, attackers any number
_LONGEST: Final = 200  # bytes of such a pair; longer ones are worked out each time


@dataclass(frozen=True, slots=True)
class Encodings:
    """The encoding of a request, and the one wanted for its answer."""

    json_in: bool
    json_out: bool
    content_type: bytes  # of the answer


class Media:
    """Content types of one kind of call; what was worked out once is remembered."""

    def __init__(self, json_type: str, *proto_types: str) -> None:
        self.accepted = ", ".join([json_type, *proto_types])
        self._json_type = json_type
        self._types = frozenset([json_type, *proto_types])
        self._known: dict[tuple[bytes | None, bytes | None], Encodings] = {}

    def encodings(self, content_type: bytes | None, accept: bytes | None) -> Encodings:
        """Return the encodings that these headers ask for; an Accept that names no encoding of ours means "in kind".

        Raises:
            UnsupportedMediaType: the request is in no encoding that we read.
        """
        known = self._known.get((content_type, accept))
        if known is not None:
            return known
        encodings = self._work_out(_text(content_type), _text(accept))
        if len(self._known) < _MEMORY and len(content_type or b"") + len(accept or b"") <= _LONGEST:
            self._known[content_type, accept] = encodings
        return encodings

    def _work_out(self, content_type: str, accept: str) -> Encodings:
        sent = self._our_type(content_type)
        if sent is None:
            raise UnsupportedMediaType(content_type, self.accepted)
        wanted = next(filter(None, map(self._our_type, by_quality(accept))), sent)
        return Encodings(sent == self._json_type, wanted == self._json_type, wanted.encode())

    def _our_type(self, media_type: str) -> str | None:
        name, *parameters = (part.strip().lower() for part in media_type.split(";"))
        charsets = [p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")]
        return name if name in self._types and all(c in {"utf-8", "utf8"} for c in charsets) else None


def is_gzip(encoding: bytes | None) -> bool:
    """Whether a Content-Encoding (or Connect-Content-Encoding) says gzip.

    Raises:
        UnsupportedEncoding: it says something else than gzip or identity.
    """
    name = _text(encoding).strip().lower()
    if name not in {"", "identity", "gzip"}:
        raise UnsupportedEncoding(name)
    return name == "gzip"


def accepts_gzip(accept_encoding: bytes | None) -> bool:
    """Whether an Accept-Encoding (or Connect-Accept-Encoding) lists gzip."""
    if accept_encoding is None or b"gzip" not in accept_encoding:
        return False
    return "gzip" in by_quality(_text(accept_encoding))


def by_quality(header: str) -> list[str]:
    """The entries of an Accept header, best first, without their quality; those of quality 0 are left out."""
    entries: list[tuple[float, str]] = []
    for entry in header.lower().split(","):
        parts = [part.strip() for part in entry.split(";")]
        weight = next((_quality(part[2:]) for part in parts if part.startswith("q=")), 1.0)
        if weight > 0:
            entries.append((weight, ";".join(part for part in parts if not part.startswith("q="))))
    return [name for _, name in sorted(entries, key=lambda e: -e[0])]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _text(header: bytes | None) -> str:
    return "" if header is None else header.decode("latin-1")
