"""The programs that judge and are judged: started by path, ended by their id, never left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
_END_S: Final = 15.0
_START_S: Final = 60.0
_LISTENING: Final = re.compile(r"^listening on (\d+)$", re.MULTILINE)


class Finished(NamedTuple):
    """A program that ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return f"{self.out}\n{self.err}".strip()


def environment() -> dict[str, str]:
    """For Python programs out of this tree; settings of HQ's do not leak in."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("HQ_") or k == "HQ_JUDGES"}
    return {**own, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients")))}


async def run(
    command: Sequence[str | Path], at_most_s: float, cwd: Path | None = None, more: dict[str, str] | None = None
) -> Finished:
    """Run a program to its end.

    Raises:
        TimeoutError: it did not end in time, and was killed.
    """
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=cwd,
        env={**environment(), **(more or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(at_most_s):
            out, err = await process.communicate()
    except TimeoutError:
        raise TimeoutError(f"{Path(command[0]).name} did not end within {at_most_s:.0f} s") from None
    finally:
        await _end(process)
        with suppress(ProcessLookupError):  # what it started, and left behind
            os.killpg(process.pid, signal.SIGKILL)
    return Finished(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))


async def must(command: Sequence[str | Path], at_most_s: float = 30.0) -> str:
    """The standard output of a program that succeeds. Raises RuntimeError: it does not."""
    done = await run(command, at_most_s)
    if done.code:
        raise RuntimeError(f"exit code {done.code}: {done.text}")
    return done.out


@asynccontextmanager
async def started(
    command: Sequence[str | Path], log: Path, more: dict[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that runs until the end of the block; what it says goes to `log`."""
    with log.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            env={**environment(), **(more or {})},
            stdin=asyncio.subprocess.PIPE,  # closes when we die, however we die: ours end then
            stdout=to,
            stderr=to,
        )
    try:
        yield process
    finally:
        await _end(process)


@asynccontextmanager
async def interop_server(directory: Path, *flags: str) -> AsyncIterator[int]:
    """Our test services in a process of their own, until the end of the block; yields the port."""
    log = directory / "judged.log"
    async with started((sys.executable, "-m", "tests.judges.interop_server", *flags), log) as process:
        async with asyncio.timeout(_START_S):
            while (found := _LISTENING.search(log.read_text(errors="replace"))) is None:
                if process.returncode is not None:
                    raise RuntimeError(f"the server under test ended: {log.read_text(errors='replace')[-2_000:]}")
                await asyncio.sleep(0.05)
        yield int(found[1])
        if process.returncode is not None:
            raise RuntimeError(f"the server under test died: {log.read_text(errors='replace')[-2_000:]}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
