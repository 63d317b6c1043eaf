"""The cookies of the console: who is signed in, which browser it is, and the result of the last action."""

from __future__ import annotations

import json
import re
import secrets
from typing import Final

from console.site.sealing import Seal, TooLong

SESSION: Final = "__Host-session"
BROWSER: Final = "__Host-browser"
FLASH: Final = "__Host-flash"
_FLASH_S: Final = 60
_FLASH_CHARS: Final = 800
_BROWSER: Final = re.compile(r"[0-9a-f]{32}")


def read_cookies(header: bytes) -> dict[str, str]:
    """Cookies by name; of several with one name the first."""
    found: dict[str, str] = {}
    for part in header.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    return found


def cookie_header(name: str, value: str, max_age_s: int | None = None) -> tuple[bytes, bytes]:
    """The header that sets a cookie; max_age_s None: until the browser ends; 0: at once."""
    age = "" if max_age_s is None else f"; Max-Age={max_age_s}"
    return b"set-cookie", f"{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax{age}".encode("latin-1")


class Jar:
    """The cookies of one request, and those that the answer sets.

    Attributes:
        browser: the name of the browser; a new one gets it with the answer.
        returning: the name, if the browser sent it; else empty.
    """

    def __init__(self, seal: Seal, header: bytes) -> None:
        cookies = read_cookies(header)
        self._seal = seal
        self.token = seal.open("session", cookies.get(SESSION, ""))
        self.browser = cookies.get(BROWSER, "")
        self.headers: list[tuple[bytes, bytes]] = []
        self.flash = _flash(seal.open("flash", cookies.get(FLASH, "")))
        self.returning = self.browser if _BROWSER.fullmatch(self.browser) else ""
        if not self.returning:
            self.browser = secrets.token_hex(16)
            self.headers.append(cookie_header(BROWSER, self.browser))
        if FLASH in cookies:
            self.headers.append(cookie_header(FLASH, "", 0))

    def sign_in(self, token: str, max_age_s: int) -> None:
        """Raises TooLong."""
        self.headers.append(cookie_header(SESSION, self._seal.seal("session", token), max_age_s))

    def sign_out(self) -> None:
        """Forget the person."""
        self.headers.append(cookie_header(SESSION, "", 0))

    def say(self, kind: str, text: str) -> None:
        """Show this on the next page."""
        try:
            sealed = self._seal.seal("flash", json.dumps((kind, text[:_FLASH_CHARS])))
        except TooLong:
            sealed = self._seal.seal("flash", json.dumps((kind, text[:200])))
        self.headers.append(cookie_header(FLASH, sealed, _FLASH_S))


def _flash(text: str) -> tuple[str, str]:
    if not text:
        return "", ""
    kind, said = json.loads(text)
    return str(kind), str(said)
