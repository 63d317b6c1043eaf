"""The flag `--otlp`: whether calls are traced. What that takes is not installed unless somebody wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from serving.telemetry.tracing import Tracing


def tracing_to(endpoint: str, service: str, instance: str) -> Tracing | None:
    """Traces to this collector; None: nobody asked for them. Raises UsageError if the packages are missing."""
    if not endpoint:
        return None
    if not endpoint.startswith(("http://", "https://")):
        raise click.UsageError(f"--otlp {endpoint}: write the collector's URL, e.g. http://127.0.0.1:4318")
    try:
        from serving.telemetry.tracing import Tracing
    except ImportError as error:
        words = f"--otlp needs packages that are not installed: pip install 'hq[otel]' ({error})"
        raise click.UsageError(words) from None
    return Tracing.to(endpoint, service, instance)
