"""Processes of which nothing is known but their id."""

from __future__ import annotations

import psutil


def is_gone(pid: int) -> bool:
    """Whether it has ended, collected by its parent or not; it may end while this looks."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
