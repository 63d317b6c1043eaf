"""Style sheet, script and picture: read once, cached by browsers by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from console.site.visits import BadPageRequest
from serving.standard.site import SiteAnswer

_FOLDER: Final = Path(__file__).resolve().parents[1] / "static"
_TYPES: Final = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml"}


class Statics:
    """The files of the folder `static`, each with its ETag."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, bytes, bytes]] = {}
        for file in sorted(_FOLDER.iterdir()):
            if file.suffix in _TYPES:
                body = file.read_bytes()
                etag = b'"' + hashlib.blake2b(body, digest_size=8).hexdigest().encode() + b'"'
                self._files[f"/static/{file.name}"] = (_TYPES[file.suffix], etag, body)

    def answer(self, path: str, headers: Mapping[bytes, bytes], always: Sequence[tuple[bytes, bytes]]) -> SiteAnswer:
        """Raises BadPageRequest: there is none of this name."""
        if path not in self._files:
            raise BadPageRequest(404, "there is no such file")
        kind, etag, body = self._files[path]
        given = [(b"content-type", kind), (b"etag", etag), (b"cache-control", b"no-cache"), *always]
        if headers.get(b"if-none-match") == etag:
            return SiteAnswer(304, given)
        return SiteAnswer(200, given, body)
