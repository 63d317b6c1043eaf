"""The local socket of a supervisor: `status` asks there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from instancectl.lines import Line, connect

_AGAIN_S = 0.2


class Control:
    """Answers questions on one connection after the other."""

    def __init__(self, answers: dict[str, Callable[[], Any]]) -> None:
        self._answers = answers

    async def talk(self, line: Line) -> None:
        while (question := await line.receive()) is not None:
            answer = self._answers.get(question.get("kind", "") if isinstance(question, dict) else "")
            line.send(answer() if answer else {"error": "known requests: " + ", ".join(sorted(self._answers))})
            await line.drained()


async def ask(socket: Path, kind: str) -> Any:
    """One question to a supervisor; None: it ended instead of answering. Raises OSError."""
    line = await connect(socket)
    try:
        line.send({"kind": kind})
        await line.drained()
        return await line.receive()
    finally:
        await line.close()


async def ask_until(asking: Callable[[], Awaitable[Any]], is_good: Callable[[Any], bool], wait_s: float) -> Any:
    """Ask again and again until the answer is good or the time is up: then the last one; None: nobody answers."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + wait_s
    while True:
        try:
            answer = await asking()
        except OSError:
            answer = None
        if loop.time() >= ends or (answer is not None and is_good(answer)):
            return answer
        await asyncio.sleep(_AGAIN_S)
