"""The gateway's opaque tokens: vectors of the locations' own tokens."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from federated.encoded.merge import Cursor
from federated.locations.config import is_name
from hqapi.requests import MAX_FILTER_VALUES
from hqpb.v1 import service_pb2
from serving.errors import ServiceError, invalid

_LONGEST: Final = 256 * 1024
_MOST_LOCATIONS: Final = 1_000
_LISTS: Final = ("instance_id", "service_id", "node_name", "revision_id", "cluster")


def check_sizes(where: service_pb2.InstanceFilter) -> None:
    """Raises InvalidRequest: too many values."""
    for name in _LISTS:
        if (count := len(getattr(where, name))) > MAX_FILTER_VALUES:
            raise invalid(f"filter.{name}", f"{count} values are too many: use at most {MAX_FILTER_VALUES}")


def filter_digest(where: service_pb2.InstanceFilter) -> str:
    """The same digest for equal filters, in whatever order they list their values. Raises InvalidRequest: too many."""
    check_sizes(where)
    where = _normalized_filter(where)
    return hashlib.blake2b(where.SerializeToString(deterministic=True), digest_size=8).hexdigest()


def _normalized_filter(where: service_pb2.InstanceFilter) -> service_pb2.InstanceFilter:
    plain = service_pb2.InstanceFilter()
    plain.CopyFrom(where)
    for name in _LISTS:
        values = getattr(plain, name)
        values[:] = sorted(set(values))
    return plain


def page_token(digest: str, cursors: Mapping[str, Cursor]) -> str:
    """Where a list over several locations continues."""
    vector = {
        name: [c.token, c.after, None if c.done is None else base64.b64encode(c.done).decode()]
        for name, c in cursors.items()
    }
    return _encode("p", digest, vector)


def cursors_of(text: str, digest: str) -> dict[str, Cursor]:
    """Cursors by location; one that is not among them was not reached yet. Raises InvalidRequest."""
    vector = _decode(text, "p", digest, "page_token")
    try:
        return {name: _cursor(name, *entry) for name, entry in vector.items()}
    except (TypeError, ValueError, DecodeError, json_format.Error) as error:
        raise _foreign("page_token") from error


def resume_token(digest: str, tokens: Mapping[str, str]) -> str:
    """Where a watch over several locations resumes; a location that is not among them starts over."""
    return _encode("w", digest, dict(tokens))


def tokens_of(text: str, digest: str) -> dict[str, str]:
    """Resume tokens by location. Raises InvalidRequest."""
    vector = _decode(text, "w", digest, "resume_token")
    if not all(_is_word(token) for token in vector.values()):
        raise _foreign("resume_token")
    return vector


def _is_word(value: object) -> bool:
    """Whether it is ASCII text, as ids and locations' tokens are; a lone surrogate could not even be sent."""
    return isinstance(value, str) and value.isascii()


def _cursor(name: str, token: Any, after: Any, done: str | None) -> Cursor:
    if not _is_word(token) or not _is_word(after):
        raise TypeError
    return Cursor(token, after, None if done is None else _source(name, base64.b64decode(done, validate=True)))


def _source(name: str, encoded: bytes) -> bytes:
    """Check that it is this location's Source and can be written as JSON; return it. Raises ValueError and others."""
    source = service_pb2.Source.FromString(encoded)
    json_format.MessageToDict(source)
    if source.cluster != name:
        raise ValueError
    return encoded


def _encode(kind: str, digest: str, vector: Mapping[str, Any]) -> str:
    text = json.dumps([kind, digest, vector], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str, kind: str, digest: str, field: str) -> dict[str, Any]:
    try:
        raw = base64.b64decode(text[:_LONGEST] + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found, of_filter, vector = json.loads(raw.decode())
    except (ValueError, TypeError, RecursionError) as error:
        raise _foreign(field) from error
    if found != kind or not isinstance(vector, dict):
        raise _foreign(field)
    if len(vector) > _MOST_LOCATIONS or not all(map(is_name, vector)):
        raise _foreign(field)
    if of_filter != digest:
        raise invalid(field, "belongs to another filter: send the filter it came from")
    return vector


def _foreign(field: str) -> ServiceError:
    return invalid(field, "not a token from a federation gateway: tokens of a single HQ are valid only there")
