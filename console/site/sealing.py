"""Small secrets in cookies: sealed with the console's key, so that a browser can keep them and nobody can read them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import zlib
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from serving.auth.audiences import unverified_claims

MAX_COOKIE_BYTES: Final = 4_000  # browsers silently drop larger ones
_NONCE_BYTES: Final = 12
_MAX_TEXT_BYTES: Final = 64 * 1024


class TooLong(Exception):
    """The sealed text does not fit into a cookie."""


class Seal:
    """Seals and opens texts, each for one purpose: a text sealed for another one does not open."""

    def __init__(self, key: bytes) -> None:
        """`key`: 32 random bytes or more."""
        self._aes = AESGCM(hashlib.sha256(b"cookies" + key).digest())
        self._mac = hashlib.sha256(b"forms" + key).digest()

    def seal(self, purpose: str, text: str) -> str:
        """Raises TooLong."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        packed = zlib.compress(text.encode(), 9)
        sealed = base64.urlsafe_b64encode(nonce + self._aes.encrypt(nonce, packed, purpose.encode())).decode()
        if len(sealed) > MAX_COOKIE_BYTES:
            raise TooLong(f"{len(sealed)} bytes; {MAX_COOKIE_BYTES} fit into a cookie")
        return sealed

    def open(self, purpose: str, sealed: str) -> str:
        """The text; empty: it is not one of ours, or was sealed with another key."""
        try:
            raw = base64.urlsafe_b64decode(sealed.encode("ascii"))
            packed = self._aes.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], purpose.encode())
            return zlib.decompressobj().decompress(packed, _MAX_TEXT_BYTES).decode()
        except (InvalidTag, ValueError, binascii.Error, zlib.error):
            return ""

    def form_token(self, browser: str) -> str:
        """Return the token that a form of this browser must send back."""
        return hmac.new(self._mac, browser.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, browser: str, sent: str) -> bool:
        """Whether a form came from a page of ours in this browser."""
        return bool(browser) and hmac.compare_digest(self.form_token(browser).encode(), sent.encode())


def expires_at(token: str) -> float | None:
    """When a token (JWT) expires by its own claim, in Unix time; None: it has none. Nothing is verified here."""
    ends_at = unverified_claims(token).get("exp")
    return float(ends_at) if isinstance(ends_at, int | float) else None


def subject(token: str) -> str:
    """The subject of a token by its own claim; empty: it has none."""
    return str(unverified_claims(token).get("sub", ""))
