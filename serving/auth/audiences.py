"""Names the servers that a token is for (aud, RFC 7519): each server has a name, and a token lists those that accept
it.

So a server that sees a token cannot use it at a server that is not in its list.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

COMMON: Final = "hq"
"""What all servers demanded up to 0.1.0."""

_REMEMBERED: Final = 4_096


def unverified_claims(token: str) -> dict[str, Any]:
    """Return the claims of a token (JWT) without verifying it; empty: it is no JWT."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def audiences_in(claim: Any) -> frozenset[str]:
    """The names in a claim `aud`: a string, or a list of strings; empty: it is neither."""
    names = [claim] if isinstance(claim, str) else claim
    if not isinstance(names, list) or not all(isinstance(name, str) and name.isprintable() for name in names):
        return frozenset()
    return frozenset(names)


@lru_cache(_REMEMBERED)
def audiences_of(token: str) -> frozenset[str]:
    """The servers that a token says it is for. Nothing is verified: the server that is sent the token does that."""
    return audiences_in(unverified_claims(token).get("aud"))


def how_to_sign(names: Collection[str]) -> str:
    """Return the advice for a token that does not list all of these servers."""
    return f"get one that lists {' and '.join(names)} (hqctl token sign --audience {','.join(names)})"
