"""Opaque strings that callers hand back: page tokens and resume tokens."""

from __future__ import annotations

import base64
import json
from binascii import b2a_base64
from collections.abc import Iterable
from typing import NamedTuple

from serving.errors import invalid

_LONGEST = 4_096  # characters


class PageToken(NamedTuple):
    """Where a list continues: after an id, with the same filter, in the same epoch."""

    epoch: str
    filter_digest: str
    last_id: str


class ResumeToken(NamedTuple):
    """Where a watch continues: after a version, with the same filter, in the same epoch."""

    epoch: str
    filter_digest: str
    version: int


# `json.dumps` builds an encoder on every call, which takes longer than the encoding.
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def encode(token: PageToken) -> str:
    return base64.urlsafe_b64encode(_to_json(token).encode()).decode().rstrip("=")


def resumption(epoch: str, filter_digest: str, version: int) -> str:
    """A ResumeToken as text. Epochs and digests are hexadecimal, so nothing needs escaping."""
    fields = f'["{epoch}","{filter_digest}",{version}]'.encode()
    return b2a_base64(fields, newline=False).translate(_URL_SAFE, b"=").decode()


def resumptions(epoch: str, filter_digests: Iterable[str], version: int) -> list[bytes]:
    """A ResumeToken as text for each digest."""
    end = f'",{version}]'
    fields = [f'["{epoch}","{digest}{end}'.encode() for digest in filter_digests]
    return [b2a_base64(token, newline=False).translate(_URL_SAFE, b"=") for token in fields]


def page_token(text: str) -> PageToken:
    """Raises InvalidRequest."""
    epoch, digest, last_id = _fields(text, "page_token")
    if not _is_word(last_id):
        raise _no_token("page_token")
    return PageToken(epoch, digest, str(last_id))


def resume_token(text: str) -> ResumeToken:
    """Raises InvalidRequest."""
    epoch, digest, version = _fields(text, "resume_token")
    if type(version) is not int or not 0 <= version < 1 << 63:
        raise _no_token("resume_token")
    return ResumeToken(epoch, digest, version)


def _fields(text: str, field: str) -> tuple[str, str, object]:
    if len(text) > _LONGEST:
        raise _no_token(field)
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        fields = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise _no_token(field) from error
    if type(fields) is not list or len(fields) != 3 or not (_is_word(fields[0]) and _is_word(fields[1])):
        raise _no_token(field)
    return fields[0], fields[1], fields[2]


def _is_word(value: object) -> bool:
    """Whether it is safe to repeat in an error message: callers can forge tokens."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _no_token(field: str) -> Exception:
    return invalid(field, "not a token from HQ: omit it to start from the beginning")
