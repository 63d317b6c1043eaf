"""The process that starts workers, when none can be started."""

from __future__ import annotations

import asyncio

from hq.process.workers import Workers
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_worker_that_cannot_be_started_ends_the_process_with_an_error() -> None:
    """Otherwise a worker that cannot be restarted, say for want of memory, would be missing unnoticed."""
    async with asyncio.timeout(60):
        assert await Workers([["/nowhere/python"]], grace_s=1.0).run() == 1
