"""Fetched content by its checksum: fetched once, whoever needs it. Blocking; called in a thread."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from pathlib import Path

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.fetch import check_scheme, fetch

_ALGORITHM = "sha256:"


class Store:
    """A directory of contents. Several instances may share it; what is in it is never changed in place."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, digest: str) -> Path:
        """Where the content with this sha256, in hex, lies."""
        return self._root / "sha256" / digest[:2] / digest

    def obtain(self, url: str, checksum: str, what: str, cancel: Cancel) -> Path:
        """The content behind `url`, fetched unless content with this checksum is here already.

        Args:
            checksum: `sha256:<hex>`; empty: whatever comes is taken, and always fetched.
            what: named in errors, e.g. `file conf/app.yaml`.

        Raises:
            PrepareFailed: it cannot be fetched, or is not what was expected.
            OSError: the disk is full, or the like.
        """
        check_scheme(url, what)
        digest = checksum.removeprefix(_ALGORITHM).lower()
        if digest and self._has(digest):
            return self.path(digest)
        incoming = self._root / f".{secrets.token_hex(8)}.part"
        try:
            fetch(url, incoming, what, cancel)
            found = _digest(incoming)
            if digest and found != digest:
                message = f"{what}: the checksum is {_ALGORITHM}{found}, expected {_ALGORITHM}{digest}"
                raise PrepareFailed("ChecksumMismatch", message)
            self.path(found).parent.mkdir(parents=True, exist_ok=True)
            incoming.replace(self.path(found))
        finally:
            incoming.unlink(missing_ok=True)
        return self.path(found)

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove every other content."""
        for path in self._root.glob("sha256/*/*"):
            if path.name not in digests:
                path.unlink(missing_ok=True)

    def _has(self, digest: str) -> bool:
        """It is here and is still what it was; damaged content is removed."""
        path = self.path(digest)
        if not path.is_file():
            return False
        if _digest(path) == digest:
            return True
        path.unlink(missing_ok=True)
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
