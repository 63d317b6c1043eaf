"""Log lines that name the instance that they are about: an agent of a node supervises many."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

_instance: ContextVar[str] = ContextVar("instance", default="")


def name_instance(instance_id: str) -> None:
    """Begin all lines of the current task, and of those that it begins, with an instance's id."""
    _instance.set(f"{instance_id}: ")


class InstanceFilter(logging.Filter):
    """Adds `instance` to records."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.instance = _instance.get()
        return True


def log_to_stderr(level: int) -> None:
    """Write lines of this level and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(InstanceFilter())
    logging.basicConfig(level=level, handlers=[handler], format="%(asctime)s %(levelname).1s %(instance)s%(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)
