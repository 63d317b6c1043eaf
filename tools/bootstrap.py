"""Make .venv complete: what `make setup`, `make run` and `make test` do first.

Needs Python >= 3.11 that can make an environment with pip: venv with ensurepip, virtualenv, or pip itself. Needs no
compiler. Quick when nothing changed.
Usage: bootstrap.py run|dev
"""

import fcntl
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "hq-stamp.json"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = (".", "proto", "clients")  # folders of packages
DESCRIPTION = tuple(ROOT / name for name in ("pyproject.toml", "setup.py", "VERSION"))
# What has no wheel: pure Python, built with the setuptools of build.txt.
FROM_SOURCE = "etcd3"


def main() -> None:
    if sys.argv[1:] not in (["run"], ["dev"]):
        stop("usage: bootstrap.py run|dev")
    profile = sys.argv[1]
    with (ROOT / "requirements" / "run.txt").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another `make` may be at it
        if not is_current(profile):
            started = time.monotonic()
            install(profile)
            say(f"done in {time.monotonic() - started:.0f} s")
            say(advice(can_compile=can_compile()))


def can_compile() -> bool:
    """Whether there is a C compiler, and Python's headers."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return headers.exists() and any(map(shutil.which, ("cc", "gcc", "clang")))


def advice(*, can_compile: bool) -> str:
    """How to get the compiled transport, with which all published figures were measured."""
    if can_compile:
        return "the transport runs from its Python sources; `make compile` makes it as fast as in the container image"
    return (
        "the transport runs from its Python sources; for the speed of the container image install a C compiler and "
        "Python's headers (Debian, Ubuntu: apt-get install gcc python3-dev), then `make compile`"
    )


def say(message: str) -> None:
    print(f"setup: {message}", flush=True)


def stop(message: str) -> NoReturn:
    sys.exit(f"setup: {message}")


def is_current(profile: str) -> bool:
    return VENV_PYTHON.exists() and read_stamp().get(profile) == fingerprint(profile)


def read_stamp() -> dict[str, str]:
    try:
        return dict(json.loads(STAMP.read_text()))
    except (OSError, ValueError):
        return {}


def interpreter() -> str:
    """Which Python the environment is made from, and where it is: in a moved folder its scripts break."""
    base = getattr(sys, "_base_executable", sys.executable)
    return f"{PYTHON_VERSION} {Path(base).resolve()} {VENV}"


def fingerprint(profile: str) -> str:
    digest = hashlib.sha256(interpreter().encode())
    for path in (*requirement_files(profile), *DESCRIPTION, Path(__file__)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(
        repr(sorted(str(found) for folder in PACKAGES for found in (ROOT / folder).glob("*/__init__.py"))).encode()
    )
    return digest.hexdigest()


def requirement_files(profile: str) -> tuple[Path, Path]:
    return ROOT / "requirements" / "build.txt", ROOT / "requirements" / f"{profile}.txt"


def install(profile: str) -> None:
    before = read_stamp()
    STAMP.unlink(missing_ok=True)
    if before.get("interpreter") != interpreter() or not works(VENV_PYTHON):
        say(f"making .venv with Python {PYTHON_VERSION}")
        make_venv()
    install_locked(*requirement_files(profile))
    run_pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", ROOT)
    write_path()
    # dev.txt holds all of run.txt.
    done = {name: fingerprint(name) for name in ({"run", "dev"} if profile == "dev" else {"run"})}
    STAMP.write_text(json.dumps({"interpreter": interpreter(), **done}))


def write_path() -> None:
    """Let the packages of hq-client be imported from this tree, too (distributions/hq-client)."""
    folder = VENV / "lib" / f"python{PYTHON_VERSION}" / "site-packages"
    lines = [str(ROOT / name) for name in PACKAGES if name != "."]
    (folder / "hq-client.pth").write_text("\n".join(lines) + "\n")


def works(python: Path) -> bool:
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    """An environment with a pip of any age: the locked one replaces it."""
    if VENV.exists():
        shutil.rmtree(VENV)
    make = next((make for module, make in MAKERS if importlib.util.find_spec(module)), None)
    if make is None:
        stop(
            f"{sys.executable} has neither ensurepip nor virtualenv nor pip: install one of them, try again "
            "(Debian, Ubuntu: apt-get install python3-venv; Fedora: dnf install python3-pip; Alpine: apk add py3-pip)"
        )
    make()


def with_ensurepip() -> None:
    from venv import EnvBuilder

    EnvBuilder(with_pip=True, symlinks=True).create(VENV)


def with_virtualenv() -> None:
    run([sys.executable, "-I", "-m", "virtualenv", "--quiet", VENV])


def with_own_pip() -> None:
    from venv import EnvBuilder

    EnvBuilder(with_pip=False, symlinks=True).create(VENV)
    run_pip("install", "pip", pip=[sys.executable, "-m", "pip", "--python", VENV_PYTHON])


MAKERS = (("ensurepip", with_ensurepip), ("virtualenv", with_virtualenv), ("pip", with_own_pip))


def install_locked(build: Path, locked: Path) -> None:
    count = sum("==" in line for line in locked.read_text().splitlines())
    say(f"installing {count} locked packages (the first time takes a minute)")
    hashed = ["install", "--require-hashes", "--only-binary=:all:"]
    run_pip(*hashed, "-r", build)
    run_pip(*hashed, f"--no-binary={FROM_SOURCE}", "--no-build-isolation", "-r", locked)


def run_pip(*arguments: object, pip: Iterable[object] = (VENV_PYTHON, "-m", "pip")) -> None:
    """Run pip; be silent unless it fails."""
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    run([*pip, *arguments, *quiet], "behind a proxy or mirror set HTTPS_PROXY or PIP_INDEX_URL, try again")


def run(command: Iterable[object], advice: str = "try again") -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        stop(f"`{' '.join(words[:4])} ...` failed (see above); {advice}")


if __name__ == "__main__":
    main()
