"""The process that minds workers, without any."""

from __future__ import annotations

import asyncio

from hq.process.workers import Workers
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_worker_that_cannot_be_started_is_no_less_missed_than_one_that_ends() -> None:
    """Else one that cannot be started again, for want of memory say, stays away without a word."""
    async with asyncio.timeout(60):
        assert await Workers([["/nowhere/python"]], grace_s=1.0).run() == 1
