"""Lock requirements/*.in to *.txt with hashes, for every platform and Python >= 3.11. `make lock` runs it.

What is locked already stays, unless --upgrade is given: only what the .in files ask for changes.
"""

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
# name: (what it is made of, what it must agree with)
LOCKS = {
    "build": (["build.in"], []),
    "run": (["run.in"], ["build.txt"]),
    "dev": (["run.in", "dev.in"], ["build.txt", "run.txt"]),
    "compile": (["compile.in"], ["build.txt", "dev.txt"]),
}


def main() -> None:
    uv = Path(sys.executable).parent / "uv"
    for name, (sources, constraints) in LOCKS.items():
        command = [
            str(uv),
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--python-version=3.11",
            "--generate-hashes",
        ]
        command += ["--no-header", *sys.argv[1:], "--output-file", f"{name}.txt", *sources]
        for constraint in constraints:
            command += ["--constraint", constraint]
        subprocess.run(command, cwd=REQUIREMENTS, check=True)


if __name__ == "__main__":
    main()
