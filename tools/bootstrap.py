"""Make .venv complete: what `make setup`, `make run` and `make test` do first.

Needs Python >= 3.11 and its standard library: no pip, no ensurepip, no compiler. Quick when nothing changed.
Usage: bootstrap.py run|dev
"""

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "hq-stamp.json"
PIP_WHEEL = ROOT / "tools" / "pip-26.3-py3-none-any.whl"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = (".", "proto", "clients")  # folders of packages
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
    """Which Python the environment is made from, and in its place: in a moved folder its scripts break."""
    base = getattr(sys, "_base_executable", sys.executable)
    return f"{PYTHON_VERSION} {Path(base).resolve()} {VENV}"


def fingerprint(profile: str) -> str:
    digest = hashlib.sha256(interpreter().encode())
    for path in (*requirement_files(profile), ROOT / "pyproject.toml", PIP_WHEEL, Path(__file__)):
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
    install_pip()
    install_locked(*requirement_files(profile))
    run_pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", ROOT)
    # dev.txt holds all of run.txt.
    done = {name: fingerprint(name) for name in ({"run", "dev"} if profile == "dev" else {"run"})}
    STAMP.write_text(json.dumps({"interpreter": interpreter(), **done}))


def works(python: Path) -> bool:
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    try:
        from venv import EnvBuilder
    except ImportError:
        stop("this Python has no venv module; install it (Debian: apt-get install python3-venv), try again")
    if VENV.exists():
        shutil.rmtree(VENV)
    # Without pip, for that would need ensurepip, which Debian's Python often has not.
    EnvBuilder(with_pip=False, symlinks=True).create(VENV)


def install_pip() -> None:
    if hashlib.sha256(PIP_WHEEL.read_bytes()).hexdigest() != PIP_SHA256:
        stop(f"{PIP_WHEEL.name} is damaged (its sha256 differs); restore it: git checkout -- tools")
    version = PIP_WHEEL.name.split("-")[1]
    asked = [str(VENV_PYTHON), "-m", "pip", "--version"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    if not found.startswith(f"pip {version} "):
        run_pip("install", "--no-index", "--no-deps", PIP_WHEEL, pip=[PIP_WHEEL / "pip"])


def install_locked(build: Path, locked: Path) -> None:
    count = sum("==" in line for line in locked.read_text().splitlines())
    say(f"installing {count} locked packages (the first time takes a minute)")
    hashed = ["install", "--require-hashes", "--only-binary=:all:"]
    run_pip(*hashed, "-r", build)
    run_pip(*hashed, f"--no-binary={FROM_SOURCE}", "--no-build-isolation", "-r", locked)


def run_pip(*arguments: object, pip: Iterable[object] = ("-m", "pip")) -> None:
    """Run pip; be silent unless it fails."""
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    command = [str(word) for word in (VENV_PYTHON, *pip, *arguments, *quiet)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        stop("pip failed (see above); behind a proxy or mirror set HTTPS_PROXY or PIP_INDEX_URL, try again")


if __name__ == "__main__":
    main()
