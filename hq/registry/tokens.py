"""Opaque words that callers hand back: page tokens and resume tokens."""

from __future__ import annotations

import base64
import json
from typing import NamedTuple

from hq.errors import invalid


class PageToken(NamedTuple):
    """Where a list goes on: behind an id, with the same filter, in the same epoch."""

    epoch: str
    filter_digest: str
    last_id: str


class ResumeToken(NamedTuple):
    """Where a watch goes on: behind a version, with the same filter, in the same epoch."""

    epoch: str
    filter_digest: str
    version: int


def encode(token: PageToken | ResumeToken) -> str:
    return base64.urlsafe_b64encode(json.dumps(token, separators=(",", ":")).encode()).decode().rstrip("=")


def page_token(text: str) -> PageToken:
    """Raises InvalidRequest."""
    epoch, digest, last_id = _fields(text, "page_token")
    if not isinstance(last_id, str):
        raise invalid("page_token", "this is not a token that HQ gave")
    return PageToken(epoch, digest, last_id)


def resume_token(text: str) -> ResumeToken:
    """Raises InvalidRequest."""
    epoch, digest, version = _fields(text, "resume_token")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1 << 63:
        raise invalid("resume_token", "this is not a token that HQ gave")
    return ResumeToken(epoch, digest, version)


def _fields(text: str, field: str) -> tuple[str, str, object]:
    try:
        raw = base64.b64decode(text[:4096] + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        epoch, digest, rest = json.loads(raw.decode())
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid(field, "this is not a token that HQ gave") from error
    if not isinstance(epoch, str) or not isinstance(digest, str):
        raise invalid(field, "this is not a token that HQ gave")
    return epoch, digest, rest
