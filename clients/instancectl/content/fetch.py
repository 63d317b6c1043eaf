"""Content behind an address (`file:`, `http:`, `https:`): fetched once, kept by its checksum. Blocking."""

from __future__ import annotations

import hashlib
import http.client
import os
import secrets
import stat
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.http_source import SILENCE_S, IpNetwork, NotOpened, http_opener

_CHUNK_BYTES = 1 << 20
_TRIES = 3
_FIRST_PAUSE_S = 0.2
_NO_USE_TRYING = range(400, 500)
_TRY_LATER = {408, 429}
MAX_BYTES = 20 << 30
FETCH_FAILED = "FetchFailed"
_ALGORITHM = "sha256:"
_PUBLIC_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Sources:
    """Where content may come from.

    Attributes:
        file_root: `file:` is allowed below it; None: nowhere.
        fetch_from: addresses of this machine or its link that http(s) may lead to.
        max_bytes: the largest content.
        allow_unchecked: also what has no checksum.
    """

    file_root: Path | None = None
    fetch_from: Sequence[IpNetwork] = ()
    max_bytes: int = MAX_BYTES
    allow_unchecked: bool = True


ANYWHERE = Sources()


def fetch(url: str, into: Path, what: str, cancel: Cancel, sources: Sources = ANYWHERE) -> None:
    """Write the content to `into`. HTTP is tried three times; a server may be silent for 30 s.

    A file that not everybody may read at its source is readable for the owner alone here, too (`is_public`).

    Raises:
        PrepareFailed: names `what` and the address, without credentials that this or a redirect may contain.
        Cancelled: `cancel` was set.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            _fetch_once(url, into, what, cancel, sources)
            break
        except urllib.error.HTTPError as error:
            final = error.code in _NO_USE_TRYING and error.code not in _TRY_LATER
            reason = f"the server responded {error.code} {http.client.responses.get(error.code, '')}".rstrip()
        except urllib.error.URLError as error:
            final, reason = isinstance(error.reason, FileNotFoundError | NotOpened), str(error.reason)
        except (http.client.InvalidURL, ValueError):  # also a host that is no name, here or in a redirect
            final, reason = True, "not a valid URL"
        except (OSError, http.client.HTTPException) as error:
            final, reason = isinstance(error, FileNotFoundError | NotOpened), str(error) or type(error).__name__
        cancel.check()
        if final or not tries_left:
            raise PrepareFailed(FETCH_FAILED, f"{what}: cannot fetch {redacted_url(url)}: {reason}")
        cancel.wait(_FIRST_PAUSE_S * 2 ** (_TRIES - 1 - tries_left))


def check_scheme(url: str, what: str) -> None:
    """Raises PrepareFailed: the scheme is not supported."""
    scheme = urllib.parse.urlsplit(url).scheme.lower()
    if scheme in ("torrent", "magnet", "rbtorrent"):
        message = f"{what}: {scheme}: is not supported by instancectl: publish it over http(s):"
        raise PrepareFailed("TorrentUnsupported", message)
    if scheme not in ("file", "http", "https"):
        raise PrepareFailed(
            "SchemeUnsupported", f"{what}: cannot fetch {redacted_url(url)}: use file:, http: or https:"
        )


def redacted_url(url: str) -> str:
    """An address for messages: without user, password, query and fragment, which may hold credentials."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def is_public(content: Path) -> bool:
    """Whether everybody may read the source of a content that was fetched to this path."""
    return bool(content.stat().st_mode & stat.S_IROTH)


def local_path(url: str, file_root: Path | None, what: str) -> Path | None:
    """The path of a `file:` address; None: it has another scheme. Raises PrepareFailed: not below `file_root`."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme.lower() != "file":
        return None
    path = Path(os.path.normpath(urllib.request.url2pathname(parts.path)))
    if file_root is None:
        message = (
            f"{what}: {path}: file: is not allowed here: start instancectl with --file-root DIR, a directory above it"
        )
        raise PrepareFailed("SchemeUnsupported", message)
    if not path.is_relative_to(file_root):
        raise PrepareFailed("BadPath", f"{what}: {path} is not below --file-root {file_root}")
    return path


def _fetch_once(url: str, into: Path, what: str, cancel: Cancel, sources: Sources) -> None:
    check_scheme(url, what)
    root, path = sources.file_root, local_path(url, sources.file_root, what)
    with _open_local(path, root, what) if path and root else _open_remote(url, cancel, sources) as source:
        file = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as target:
            if path is None or os.fstat(source.fileno()).st_mode & stat.S_IROTH:
                os.fchmod(file, _PUBLIC_MODE)
            _copy(source, target, cancel, sources.max_bytes)


def _open_remote(url: str, cancel: Cancel, sources: Sources) -> BinaryIO:
    opened: BinaryIO = http_opener(cancel, sources.fetch_from).open(url, timeout=SILENCE_S)
    return opened


def _open_local(path: Path, file_root: Path, what: str) -> BinaryIO:
    """Open a regular file, wherever links on the way lead, as long as that is below `file_root`.

    Raises:
        PrepareFailed: it is elsewhere, or not a regular file.
        OSError: it cannot be opened.
    """
    # Opened for reading only once it is known to be a file: opening a device may have effects.
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        opened = Path(f"/proc/self/fd/{place}")
        if not opened.readlink().is_relative_to(file_root.resolve()):
            raise PrepareFailed("BadPath", f"{what}: {path} leads out of --file-root {file_root}")
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise PrepareFailed("BadPath", f"{what}: {path} is not a regular file")
        return opened.open("rb")
    finally:
        os.close(place)


def _copy(source: BinaryIO, target: BinaryIO, cancel: Cancel, max_bytes: int) -> None:
    copied_bytes = 0
    while chunk := source.read(_CHUNK_BYTES):
        cancel.check()
        copied_bytes += len(chunk)
        if copied_bytes > max_bytes:
            raise NotOpened(f"it has more than {max_bytes} bytes (--fetch-bytes)")
        target.write(chunk)
    # urllib treats a broken connection as the end; only the announced length reveals it.
    expected = getattr(source, "length", None)
    if expected:
        raise http.client.IncompleteRead(b"", expected)


class ContentStore:
    """A directory of contents. Several instances may share it; what is in it is never changed in place."""

    def __init__(self, root: Path, sources: Sources = ANYWHERE) -> None:
        self._root = root
        self._sources = sources

    def path(self, digest: str) -> Path:
        """Where the content with this sha256 (in hex) is kept."""
        return self._root / "sha256" / digest[:2] / digest

    def obtain(self, url: str, checksum: str, what: str, cancel: Cancel) -> Path:
        """The content behind `url`, fetched unless content with this checksum is here already.

        Args:
            checksum: `sha256:<hex>`; empty: anything is accepted, and always fetched again.
            what: named in errors, e.g. `file conf/app.yaml`.

        Raises:
            PrepareFailed: it may not or cannot be fetched, or is not what was expected.
            OSError: the disk is full, or the like.
        """
        check_scheme(url, what)
        local_path(url, self._sources.file_root, what)  # may fail though the content is here already
        digest = checksum.removeprefix(_ALGORITHM).lower()
        if not (digest or self._sources.allow_unchecked):
            message = f"{what}: has no checksum: write sha256:<hex>, or start instancectl with --allow-unchecked"
            raise PrepareFailed("ChecksumMissing", message)
        if digest and self._has(digest):
            return self.path(digest)
        incoming = self._root / f".{secrets.token_hex(8)}.part"
        try:
            fetch(url, incoming, what, cancel, self._sources)
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
        """Whether the content is here and intact; damaged content is removed."""
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
