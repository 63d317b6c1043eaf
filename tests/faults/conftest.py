"""Real replicas for tests that break things."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.replicas import Replicas


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    """`await replicas.start([endpoint], prefix, "--flag")`: all of them end with the test."""
    async with Replicas(tmp_path) as started:
        yield started
