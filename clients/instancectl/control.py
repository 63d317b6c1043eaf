"""The local socket of a supervisor: `status` asks there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clients.instancectl.lines import Line, connect


class Control:
    """Answers questions on one connection after the other."""

    def __init__(self, answers: dict[str, Callable[[], Any]]) -> None:
        self._answers = answers

    async def talk(self, line: Line) -> None:
        while (question := await line.receive()) is not None:
            answer = self._answers.get(question.get("kind", "") if isinstance(question, dict) else "")
            line.send(answer() if answer else {"error": "ask for one of: " + ", ".join(sorted(self._answers))})
            await line.drained()


async def ask(socket: Path, kind: str) -> Any:
    """One question to a supervisor or host agent; None: it ended instead of answering. Raises OSError."""
    line = await connect(socket)
    try:
        line.send({"kind": kind})
        await line.drained()
        return await line.receive()
    finally:
        await line.close()
