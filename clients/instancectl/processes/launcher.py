"""Run as a script before each command: waits for permission, applies limits, becomes the command (exec).

Until then nothing of the command runs. If the supervisor dies before it has recorded that this
process exists, the pipe closes and the process exits: what runs is always known, so it is never started twice.

Usage: python -I -S launcher.py FD COMMAND [ARGUMENT]...
"""

import os
import resource
import signal
import sys

NEVER_BEGAN, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127


def main() -> None:
    leave = int(sys.argv[1])
    command = sys.argv[2:]
    words = _read_line(leave).split()
    if not words or words[0] != b"go":
        sys.exit(NEVER_BEGAN)
    os.close(leave)
    for word in words[1:]:
        name, _, value = word.decode().partition("=")
        _limit(int(name), int(value))
    # Python ignores these; programs expect the default disposition.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"instancectl: cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


def _read_line(leave: int) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        part = os.read(leave, 4096)
        if not part:
            return b""
        received += part
    return received


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bounded, bounded))


if __name__ == "__main__":
    main()
