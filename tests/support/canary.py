"""Secrets that tests make are looked for in whatever was written meanwhile: a pytest plugin, for every test.

Tokens, private keys and secret descriptors of tests are kept here when they are made. When a test ends, neither the
log of its own process nor a log, output or audit file of processes that it started may hold one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_WRITTEN: Final = (".log", ".out", ".err", ".jsonl")
_SHORTEST: Final = 8
_made: set[str] = set()


def keep(secret: str) -> str:
    """Nothing may write this from now on until the test ends; it is handed back."""
    assert len(secret) >= _SHORTEST, "too short to be found by no accident"
    _made.add(secret)
    return secret


def found_in(text: str) -> list[str]:
    """The secrets in a text, cut short: a report is a log, too."""
    return [secret[:6] + "…" for secret in sorted(_made) if secret in text]


class Listener(logging.Handler):
    """Hears every line of the log of this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if _made and (found := found_in(logging.Formatter().format(record))):
            self.told.append(f"{record.name}: {found}")


def leaks(listener: Listener, written: Path) -> list[str]:
    """Where secrets were found."""
    told = [f"the log of the test's own process, {line}" for line in listener.told]
    files = sorted(p for p in written.rglob("*") if p.suffix in _WRITTEN and p.is_file()) if written.is_dir() else []
    by_file = {path: found_in(path.read_text(errors="replace")) for path in files}
    return told + [f"{path.relative_to(written)}: {found}" for path, found in by_file.items() if found]


@pytest.fixture(autouse=True)
def no_secret_is_written(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test that wrote one."""
    listener = Listener()
    logging.getLogger().addHandler(listener)
    _made.clear()
    # Made before this fixture's own set-up, it would be removed too early: files are read after the processes ended.
    written = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else Path("/nowhere")
    yield
    logging.getLogger().removeHandler(listener)
    told = leaks(listener, written) if _made or listener.told else []
    _made.clear()
    assert not told, f"secrets were written: {'; '.join(told)}"
