"""Blocking work of one instance does not hold up that of another."""

from __future__ import annotations

import asyncio
import threading

import pytest

from instancectl.background import run_in_thread, start_in_own_thread


async def test_hanging_work_does_not_hold_up_other_work() -> None:
    hung = threading.Event()
    waiting = [start_in_own_thread(hung.wait) for _ in range(64)]
    try:
        async with asyncio.timeout(30):
            assert await run_in_thread(lambda cancel: 7) == 7
    finally:
        hung.set()
    await asyncio.gather(*waiting)


async def test_a_failure_is_raised_to_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await start_in_own_thread(lambda: 1 // 0)
