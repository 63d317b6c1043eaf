"""Signing in with a token, and out."""

from __future__ import annotations

import math
import re
from typing import Final

from console.backends.asking import TOKEN, SignInNeeded, Trouble, not_for_console
from console.backends.servers import Servers
from console.site.sealing import MAX_COOKIE_BYTES, TooLong, expires_at
from console.site.visits import Redirect, Route, TemplatePage, Visit
from console.views.urls import url
from hqpb.v1 import service_pb2 as pb

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,16000}")
_PROBE: Final = pb.InstanceFilter(instance_id=["-"])  # the cheapest question


class Signing:
    """`/signin` and `/signout`."""

    def __init__(self, servers: Servers, *, is_open: bool) -> None:
        """`is_open`: the console may be used without signing in, where the servers allow that."""
        self._registry, self._audiences, self._is_open = servers.registry, servers.audiences, is_open

    def routes(self) -> list[Route]:
        """Routes for signing in and out."""
        return [
            Route("GET", "/signin", self.form),
            Route("POST", "/signin", self.sign_in),
            Route("POST", "/signout", self.sign_out),
        ]

    async def form(self, visit: Visit) -> TemplatePage:
        """Where a token goes in."""
        return TemplatePage("signin.html", "Sign in", {"to": _back(visit.query.get("to", ""))})

    async def sign_in(self, visit: Visit) -> Redirect:
        """Try the token on HQ before it is stored."""
        token, to = visit.form.get("token", ""), _back(visit.form.get("to", ""))
        again = url("signin", to=to)
        if not _TOKEN.fullmatch(token):
            return Redirect(again, failed="That is not a token: paste one line, as `hqctl token sign` prints it.")
        age_s = math.inf if (ends_at := expires_at(token)) is None else ends_at - visit.now_s
        if age_s <= 0:
            return Redirect(again, failed="This token has expired: get a new one.")
        if refusal := not_for_console(token, self._audiences) or await self._refusal(token):
            return Redirect(again, failed=refusal)
        assert visit.jar is not None
        try:
            visit.jar.sign_in(token, int(min(age_s, 86_400.0)))
        except TooLong as error:
            return Redirect(again, failed=f"This token is too long for a cookie ({error}; at most {MAX_COOKIE_BYTES}).")
        return Redirect(to, done="Signed in.")

    async def _refusal(self, token: str) -> str:
        TOKEN.set(token)
        try:
            found = await self._registry.counts(pb.COUNT_GROUP_UNSPECIFIED, _PROBE)
        except SignInNeeded as error:
            return f"HQ does not accept this token: {error}"
        if isinstance(found, Trouble) and found.kind != "denied":
            return f"The token cannot be checked: {found.text}"
        if not self._is_open and not await self._asks_for_tokens():
            return "HQ answers without a token: it has no authentication, and this console can be reached by others."
        return ""

    async def _asks_for_tokens(self) -> bool:
        TOKEN.set("")
        try:
            await self._registry.counts(pb.COUNT_GROUP_UNSPECIFIED, _PROBE)
        except SignInNeeded:
            return True
        return False

    async def sign_out(self, visit: Visit) -> Redirect:
        """Forget the token here; it stays valid elsewhere until it expires."""
        assert visit.jar is not None
        visit.jar.sign_out()
        return Redirect("/signin", done="Signed out of this browser. The token itself is valid until it expires.")


def _back(to: str) -> str:
    """A path on this console, never on another host."""
    return to if re.fullmatch(r"/(?![/\\])[!-~]*", to) and not to.startswith("/sign") else "/"
