"""Use the compiled transport in a checkout, if `make compile` built it from exactly these sources (decision 104).

The compiled modules are in `.compiled`, apart from the sources. After an edit anywhere in this package they no longer
match, and Python runs the sources, until the next `make compile`. In a wheel they are beside the sources instead, where
Python finds them without this file.
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
COMMON: Final = "serving__mypyc"  # the shared library that all compiled modules load


def digest() -> str:
    """Digest of every source of this package: compiled modules contain constants from modules that are not compiled.

    And of setup.py, which lists the modules to compile.
    """
    sources = [ROOT / "setup.py", *sorted(Path(__file__).parent.rglob("*.py"))]
    return hashlib.sha256(
        b"\0".join([part for one in sources for part in (bytes(one.relative_to(ROOT)), one.read_bytes())])
    ).hexdigest()


def record() -> Path:
    """The file with the digest of the sources that were compiled, for this version of Python."""
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
    """Call this before any of the modules is imported. SERVING_INTERPRETED=1 in the environment makes it do nothing."""
    if FOLDER.exists() and not os.environ.get("SERVING_INTERPRETED") and is_current():
        sys.meta_path.insert(0, _Finder())


def form() -> str:
    """Return which code this process runs, `compiled` or `interpreted`, in a checkout or from a wheel."""
    found = find_spec("serving.head")
    return "compiled" if found is not None and str(found.origin).endswith(SUFFIX) else "interpreted"
