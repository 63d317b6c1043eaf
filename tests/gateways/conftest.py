"""Programs that end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway_process import Programs, programs


@pytest.fixture
async def started(tmp_path: Path) -> AsyncIterator[Programs]:
    """`await started.registry()`, `await started.gateway("dns", hq)`."""
    async with programs(tmp_path) as running:
        yield running
