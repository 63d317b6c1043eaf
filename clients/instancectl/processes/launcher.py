"""Run as a script before each command: waits for permission, gives up what it may not keep, becomes the command (exec).

Until then nothing of the command runs. If the supervisor dies before it has recorded that this
process exists, the pipe closes and the process exits: what runs is always known, so it is never started twice.

Usage: python -I -S launcher.py FD COMMAND [ARGUMENT]...
"""

import os
import resource
import signal
import sys
import warnings  # noqa: F401 - os.execvp imports it, and as another user it may not be able to read our library

NEVER_BEGAN, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _LAST_CAPABILITY = 24, 38, 63


def main() -> None:
    leave = int(sys.argv[1])
    command = sys.argv[2:]
    words = _read_line(leave).split()
    if not words or words[0] != b"go":
        sys.exit(NEVER_BEGAN)
    os.close(leave)
    _reset_oom_score()
    try:
        _confine([word.decode() for word in words[1:]])
    except OSError as error:
        print(f"instancectl: cannot confine {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        sys.exit(NEVER_BEGAN)
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


def _reset_oom_score() -> None:
    """The supervisor may be protected from the OOM killer; the command is not."""
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, b"0")
        os.close(file)
    except OSError:
        pass  # raising it needs no privilege, so there was no protection to take away


def _confine(words: list[str]) -> None:
    """Limits, then privileges, then the user: each needs what the next one takes away. Raises OSError."""
    for word in words:
        name, _, value = word.partition("=")
        if name.isdecimal():
            _limit(int(name), int(value))
    if "hardened" in words:
        _harden()
    for word in words:
        name, _, value = word.partition("=")
        if name == "user":
            uid, _, gid = value.partition(":")
            os.setgroups([])
            os.setresgid(int(gid), int(gid), int(gid))
            os.setresuid(int(uid), int(uid), int(uid))  # of a user that is not root: no capability is left


def _harden() -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    os.umask(0o077)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs is not supported")
    for capability in range(_LAST_CAPABILITY):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails if we may not, and then we have none to hand on


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bounded, bounded))


if __name__ == "__main__":
    main()
