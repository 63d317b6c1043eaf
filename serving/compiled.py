"""In a checkout: the compiled form of the transport, if `make compile` made one of just these sources (decision 104).

It lies apart from them, in `.compiled`, and is taken only while the sources are those it was made of: whoever edits one
runs what is written there until the next `make compile`. In a wheel it lies beside the sources; Python finds it there.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / ".compiled"
SUFFIX: Final = EXTENSION_SUFFIXES[0]
COMMON: Final = "serving__mypyc"  # what the modules have in common


def digest() -> str:
    """Of all of this package, since what is compiled holds constants of what is not, and of what says which that is."""
    sources = [ROOT / "setup.py", *sorted(Path(__file__).parent.rglob("*.py"))]
    return hashlib.sha256(
        b"\0".join([part for one in sources for part in (bytes(one.relative_to(ROOT)), one.read_bytes())])
    ).hexdigest()


def record() -> Path:
    """What holds the digest of the sources that were compiled for this Python."""
    return FOLDER / f"sources{SUFFIX}.sha256"


def is_current() -> bool:
    try:
        return record().read_text() == digest()
    except OSError:
        return False


class _Finder:
    """Finds the compiled modules before Python finds their sources."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name != COMMON and not name.startswith("serving."):
            return None
        file = FOLDER / (name.replace(".", "/") + SUFFIX)
        return spec_from_file_location(name, file) if file.exists() else None


def use() -> None:
    """To be called before the first of the modules is imported. SERVING_INTERPRETED=1 in the environment forbids it."""
    if FOLDER.exists() and not os.environ.get("SERVING_INTERPRETED") and is_current():
        sys.meta_path.insert(0, _Finder())


def form() -> str:
    """What this process runs, `compiled` or `interpreted`, in a checkout or from a wheel."""
    found = find_spec("serving.head")
    return "compiled" if found is not None and str(found.origin).endswith(SUFFIX) else "interpreted"
