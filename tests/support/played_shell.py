"""`make machines`: a shell on the operators' machine of docs/production.md, beside hq-1 to hq-3 and node-1.

Nothing of it is left when the shell ends. Takes root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.etcd import binary_of
from tests.support.played_machines import CannotPlay, PlayedMachines, in_namespaces

MACHINES: Final = {"hq-1": "10.0.0.1", "hq-2": "10.0.0.2", "hq-3": "10.0.0.3", "node-1": "10.0.0.11"}
_INSIDE: Final = "--inside"


def play() -> int:
    """Exit code of the shell. Raises CannotPlay."""
    with tempfile.TemporaryDirectory(prefix="hq-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # users of services look into it
        for part in ("played", "operators"):
            (folder / part).mkdir()
        machines = PlayedMachines(folder / "played", Path(binary_of("3.5").path))
        try:
            for machine, address in MACHINES.items():
                machines.add(machine, address)
            path = os.pathsep.join((str(machines.tools), str(Path(sys.executable).parent), os.environ["PATH"]))
            print(
                "hq-1, hq-2, hq-3 and node-1 are on, with HQ and etcd: begin docs/production.md at 2. `exit` ends all."
            )
            sys.stdout.flush()
            shell = os.environ.get("SHELL", "/bin/sh")
            return subprocess.call([shell], cwd=folder / "operators", env={**os.environ, "PATH": path})
        finally:
            machines.end()


def main() -> int:
    try:
        if _INSIDE in sys.argv:
            return play()
        command = in_namespaces([sys.executable, "-m", "tests.support.played_shell", _INSIDE])
    except CannotPlay as error:
        print(f"make machines: no machines can be played on this one: {error}", file=sys.stderr)
        return 1
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main())
