"""The watch over secrets finds them: in the log, in a traceback, in files of other processes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support import canary

SECRET = "canary-in-a-coal-mine"


@pytest.fixture
def heard() -> canary.Listener:
    listener = canary.Listener()
    canary.keep(SECRET)
    return listener


def apart(listener: canary.Listener) -> logging.Logger:
    """A logger that `listener` hears and the plugin does not."""
    log = logging.getLogger("apart")
    log.propagate = False
    log.addHandler(listener)
    return log


def told(listener: canary.Listener, log: logging.Logger) -> list[str]:
    log.removeHandler(listener)
    return canary.leaks(listener, Path("/nowhere"))


def test_a_secret_in_a_log_line_is_found_and_not_repeated(heard: canary.Listener) -> None:
    log = apart(heard)
    log.warning("token %s refused", SECRET)
    [leak] = told(heard, log)
    assert "apart" in leak
    assert SECRET not in leak


def test_a_secret_in_a_traceback_is_found(heard: canary.Listener) -> None:
    log = apart(heard)
    log.error("failed", exc_info=ValueError(f"cannot read {SECRET}"))
    assert len(told(heard, log)) == 1


def test_a_secret_in_a_file_of_another_process_is_found(heard: canary.Listener, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "audit.jsonl").write_text(f'{{"key": "{SECRET}"}}\n')
    (below / "own.token").write_text(SECRET)
    assert len(canary.leaks(heard, tmp_path)) == 1
    (below / "audit.jsonl").unlink()
    assert canary.leaks(heard, tmp_path) == []
