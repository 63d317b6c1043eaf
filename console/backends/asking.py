"""How servers are asked: with the visitor's own token; failures are values that a page shows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import grpc

from hqclient.errors import HqApiError, decode
from serving.auth.audiences import COMMON, audiences_of, how_to_sign

T = TypeVar("T")

TOKEN: Final[ContextVar[str]] = ContextVar("token", default="")
"""The token of the visitor whose request this is; set for each request before any server is asked."""

CLUSTER: Final[ContextVar[str]] = ContextVar("cluster", default="")
"""Which location is meant, where a gateway serves several."""

OWN_AUDIENCE: Final = "console"
OF_HQ: Final = frozenset({COMMON})
TIMEOUT_S: Final = 5.0


class SignInNeeded(Exception):
    """A server requires authentication."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why part of a page is not there.

    Attributes:
        kind: "missing" (not configured), "denied", "away" (does not answer), "absent" (no such thing), "failed".
    """

    server: str
    kind: str
    text: str
    next: str = ""


def metadata(audiences: frozenset[str] = OF_HQ) -> Sequence[tuple[str, str]]:
    """Return the metadata of each call to a server of one of these audiences.

    Raises HqApiError: the person's token is not for this server, which therefore must not see it; no such location.
    """
    sent = []
    if token := TOKEN.get():
        if not audiences & audiences_of(token):
            raise HqApiError(grpc.StatusCode.PERMISSION_DENIED, f"your token is not for it: {_for_both(audiences)}")
        sent.append(("authorization", f"Bearer {token}"))
    if cluster := CLUSTER.get():
        if not (cluster.isascii() and cluster.isprintable()):  # of a page's address; gRPC could not send it
            raise HqApiError(grpc.StatusCode.NOT_FOUND, f"there is no location {cluster[:80]!a}")
        sent.append(("x-hq-cluster", cluster))
    return sent


def _for_both(audiences: frozenset[str]) -> str:
    return how_to_sign((OWN_AUDIENCE, min(audiences)))


def not_for_console(token: str, audiences: frozenset[str]) -> str:
    """Why a token does not open a console of one of these audiences, which must show it to HQ; empty: it does."""
    listed = audiences_of(token)
    return "" if audiences & listed and OF_HQ & listed else f"This token is not for both: {_for_both(OF_HQ)}."


async def try_call(server: str, call: Awaitable[T]) -> T | Trouble:
    """Return the answer of the call, or why there is none. Raises SignInNeeded."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await call
    except grpc.aio.AioRpcError as error:
        return trouble(server, decode(error))
    except HqApiError as error:
        return trouble(server, error)
    except TimeoutError:
        return Trouble(server, "away", f"{server} did not answer within {TIMEOUT_S:g} s", "The console keeps trying.")


_KINDS: Final[Mapping[grpc.StatusCode, str]] = {
    grpc.StatusCode.PERMISSION_DENIED: "denied",
    grpc.StatusCode.NOT_FOUND: "absent",
    grpc.StatusCode.INVALID_ARGUMENT: "absent",  # nothing can have such a name
    grpc.StatusCode.UNAVAILABLE: "away",
    grpc.StatusCode.DEADLINE_EXCEEDED: "away",
}
_NEXT: Final = {
    "denied": "Sign in with a token that has the role, or ask whoever keeps the policy. "
    "What a role for some services or nodes covers opens by its name.",
    "away": "Check its process and the address; the console keeps trying.",
}


def trouble(server: str, error: HqApiError) -> Trouble:
    """Raises SignInNeeded."""
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
        raise SignInNeeded(error.message) from None
    if error.code is grpc.StatusCode.UNIMPLEMENTED:
        return Trouble(server, "missing", f"this {server} does not offer that: {error.message}")
    kind = _KINDS.get(error.code, "failed")
    said = error.message.rstrip(".")
    text = f"{server} does not answer: {said}" if kind == "away" else said
    return Trouble(server, kind, text, _NEXT.get(kind, ""))


def missing(server: str, flag: str) -> Trouble:
    """The trouble that the console was started without this server."""
    return Trouble(
        server, "missing", f"{server} is not connected", f"Start the console with {flag} HOST:PORT to see this."
    )


def good(found: T | Trouble, default: T) -> T:
    """Return the answer, else the default; the trouble itself is shown elsewhere on the page."""
    return default if isinstance(found, Trouble) else found


def status_of(found: object, *asked: Any) -> int:
    """The HTTP status: 404 if nothing was found and every server could be asked."""
    return 200 if found or any(one.kind != "absent" for one in troubles(*asked)) else 404


def unreachable_troubles(*found: Any) -> list[Trouble]:
    """Servers that could not be asked; "not found" and "denied" are answers."""
    return [one for one in troubles(*found) if one.kind in ("away", "failed")]


def hidden_troubles(*found: Any) -> list[Trouble]:
    """Why something is not on a page though it may exist: nobody answered, or this person may not see it."""
    return [one for one in troubles(*found) if one.kind in ("away", "failed", "denied")]


def troubles(*found: Any) -> list[Trouble]:
    """Servers that failed, each once."""
    return list(dict.fromkeys(one for one in found if isinstance(one, Trouble)))
