"""Tests under other limits than the defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serving.limiting.limits import Limits


def limited(**changes: float) -> pytest.MarkDecorator:
    """These limits for the test's servers."""
    return pytest.mark.parametrize("limits", [replace(Limits(), **changes)])  # type: ignore[arg-type]
