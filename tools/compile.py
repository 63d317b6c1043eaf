"""`make compile`: compile the transport for this checkout, unless that was done since the last edit.

Needs a C compiler and Python's headers. setup.py lists what is compiled; `serving/compiled.py` makes Python use it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serving import compiled


def main() -> None:
    if compiled.is_current():
        return
    started, digest = time.monotonic(), compiled.digest()
    print("compile: the transport, by mypyc (about a minute)", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        made = build(Path(scratch))
        shutil.rmtree(compiled.FOLDER, ignore_errors=True)
        shutil.copytree(made, compiled.FOLDER)
        compiled.record().write_text(digest)  # last: without it the modules are not used
    check_use()
    print(f"compile: done in {time.monotonic() - started:.0f} s")


def build(scratch: Path) -> Path:
    """The folder with all compiled modules; exits with all that the compilers said if one of them fails."""
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "-j2", "-b", scratch / "made", "-t", scratch / "temporary"],
        cwd=compiled.ROOT,
        env={**os.environ, "SERVING_COMPILE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(
            f"{done.stdout}{done.stderr}\ncompile: failed, see above. It needs a C compiler and Python's headers "
            "(Debian, Ubuntu: apt-get install gcc python3-dev). HQ works without it, only slower."
        )
    return scratch / "made"


def check_use() -> None:
    """Exit unless a process that starts now uses the compiled modules."""
    command = [sys.executable, "-c", "import serving.transport.server as one; print(one.__file__)"]
    done = subprocess.run(command, cwd=compiled.ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip().endswith(compiled.SUFFIX):
        sys.exit(
            f"{done.stderr}\ncompile: the compiled modules are not used; imported {done.stdout.strip() or 'nothing'}"
        )


if __name__ == "__main__":
    main()
