"""The process between a server and its own etcd, so that etcd never outlives it, not even when it dies of SIGKILL.

Run as a script, standard library only: `etcd_parent.py LOG_PATH GRACE_S INHERITED_FD|- etcd --flags...`. Its stdin
is a pipe that the server holds open and never writes to: its end is the order to stop etcd. Its stdout says etcd's
pid, once. It keeps etcd's log within two files of bounded size, and exits when etcd has.

PR_SET_PDEATHSIG in the server itself would not do: it is bound to the thread that forked, and macOS has none.
"""

import contextlib
import logging.handlers
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

LOG_BYTES = 2 << 20
PR_SET_PDEATHSIG = 1


def main() -> None:
    log_path, grace_s, inherited, *command = sys.argv[1:]
    log = open_log(log_path)
    signal.signal(signal.SIGTERM, on_sigterm)
    etcd = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=() if inherited == "-" else (int(inherited),),
        preexec_fn=die_with_parent(),
    )
    try:
        print(etcd.pid, flush=True)
        sys.stdout = None  # the server may be gone: no flush at exit into a broken pipe
        copy_log_until_an_end(etcd, log)
    finally:
        stop(etcd, float(grace_s))


def open_log(path: str) -> logging.Logger:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, errors="replace")
    log = logging.getLogger("etcd")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    return log


def on_sigterm(_signal: int, _frame: object) -> NoReturn:
    sys.exit(1)


def die_with_parent() -> Callable[[], None] | None:
    """On Linux, a second line of defence: etcd dies with this process. It works because we have one thread."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes
    except ImportError:
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def copy_log_until_an_end(etcd: "subprocess.Popen[bytes]", log: logging.Logger) -> None:
    """Return when the server has let go of our stdin, or when etcd has ended (and so closed its output)."""
    assert etcd.stdout is not None
    output = etcd.stdout.fileno()
    while True:
        readable, _, _ = select.select([0, output], [], [])
        if output in readable:
            chunk = os.read(output, 1 << 16)
            if not chunk:
                return
            log.info("%s", chunk.decode(errors="replace").removesuffix("\n"))
        if 0 in readable and not os.read(0, 1):
            return


def stop(etcd: "subprocess.Popen[bytes]", grace_s: float) -> None:
    etcd.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        etcd.wait(grace_s)
    etcd.kill()
    etcd.wait()


if __name__ == "__main__":
    main()
