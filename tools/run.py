"""`make run`: an HQ with its own etcd, and the console; a recorder with `--recorder`. All end with this process,
however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from typing import Final

from store.embedded.etcd_parent import die_with_parent

_PARTS: Final = {"HQ": ("hq.main", "dev"), "the console": ("console.main", "serve", "--log-level", "warning")}
_RECORDER: Final = ("recorder.main", "serve", "--log-level", "warning")
_RECORDER_AT: Final = "127.0.0.1:7871"
_GRACE_S: Final = 20.0
_POLL_S: Final = 0.2


async def run() -> int:
    """Start all; when one has ended, a signal has come, or make is gone, end the others. Return the exit code."""
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            asyncio.get_running_loop().add_signal_handler(number, told.set)
    parts = {name: await _start(*words) for name, words in _parts().items()}
    ends = [asyncio.create_task(each) for each in (told.wait(), _until_orphaned(), *(p.wait() for p in parts.values()))]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    ended = {name: part.returncode for name, part in parts.items() if part.returncode is not None}
    if ended and not told.is_set():
        print(f"make run: {' and '.join(ended)} ended; everything stops", file=sys.stderr, flush=True)
    await asyncio.gather(*map(_end, parts.values()))
    for task in ends:
        task.cancel()
    return max(map(abs, ended.values()), default=0)


def _parts() -> dict[str, tuple[str, ...]]:
    if "--recorder" not in sys.argv:
        return _PARTS
    at, directory = os.environ.get("HQ_RECORDER_GRPC", _RECORDER_AT), os.environ.get("HQ_RECORDER_DIR", ".hq-record")
    console = (*_PARTS["the console"], "--recorder", at)
    return {**_PARTS, "the recorder": (*_RECORDER, "--dir", directory), "the console": console}


async def _start(*words: str) -> Process:
    """Start it in a session of its own: Ctrl-C reaches this process alone, which tells each child once to end."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words), start_new_session=True, preexec_fn=die_with_parent()
    )


async def _until_orphaned() -> None:
    """Return when the process that started this one is gone: make, killed by SIGKILL, tells nobody."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_POLL_S)


async def _end(part: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        part.terminate()
    try:
        async with asyncio.timeout(_GRACE_S):
            await part.wait()
    except TimeoutError:
        part.kill()
        await part.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
