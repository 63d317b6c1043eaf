"""The client under test: a process that is asked in lines of JSON on stdin, and answers in lines on stdout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

ANSWER_S: Final = 30.0
_LONGEST_LINE: Final = 64 * 1024 * 1024


class ClientDied(Exception):
    """The client under test ended, or did not answer; str() says what it was asked."""


class ClientProcess:
    """Starts when it is asked first; what it writes to stderr is passed through."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, op: str, **words: Any) -> dict[str, Any]:
        """Its answer to one line. Raises ClientDied."""
        if self._process is None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, limit=_LONGEST_LINE
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **words}).encode() + b"\n")
            async with asyncio.timeout(ANSWER_S):
                line = await self._process.stdout.readline()
            answer: dict[str, Any] = json.loads(line)
        except (OSError, TimeoutError, ValueError) as error:
            await self.kill()
            raise ClientDied(f"the client gave no answer to {op!r}: {type(error).__name__} {error}") from None
        if "error" in answer and op != "state":
            raise ClientDied(f"the client failed at {op!r}: {answer['error']}")
        return answer

    async def kill(self) -> None:
        """End it at once, as SIGKILL does; the next question starts another one."""
        if self._process is not None:
            process, self._process = self._process, None
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def close(self) -> None:
        """Let it end by itself: its stdin is closed. Raises ClientDied if it does not."""
        if self._process is None:
            return
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(ANSWER_S):
                await process.wait()
        except TimeoutError:
            await self.kill()
            raise ClientDied("the client did not end when its stdin was closed") from None
        self._process = None
