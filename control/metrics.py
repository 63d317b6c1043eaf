"""Metrics of a controller's memory, the same for each controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from control.controller import Controller
from serving.telemetry.metrics import Declared

T = TypeVar("T")


def memory_metrics(server: str, controller: Callable[[T], Controller]) -> tuple[Declared[T], ...]:
    """How a controller's memory proves itself against its store. `server`: what the names begin with."""
    return (
        Declared(
            "counter",
            f"{server}_store_repairs_total",
            "Records in memory that differed from the store and were mended.",
            lambda subject: controller(subject).repairs,
        ),
        Declared(
            "gauge",
            f"{server}_memory_compared_seconds",
            "Time since all records in memory were last compared with the store; +Inf: not yet.",
            lambda subject: controller(subject).compared_ago_s(),
        ),
    )
