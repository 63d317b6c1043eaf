"""Build sdist and wheel, install the wheel into an environment of its own, and run every command from there.

The wheel is built from the sdist, so a file that the sdist lacks is found as well. Third-party packages are those of
.venv, which `make setup` installed as locked: nothing is downloaded.
"""

import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from venv import EnvBuilder

ROOT = Path(__file__).resolve().parent.parent
WHERE_FROM = "import hq, hqpb.v1.service_pb2, store, serving, federated, hqclient; print(hq.__file__)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder) / "dist")
        scripts = install(built, Path(folder) / "venv")
        prove(scripts, Path(folder))
    print(f"packages: {built.name} builds from the sdist, installs and runs")


def build(target: Path) -> Path:
    """The wheel, made by way of the sdist."""
    python = ["--no-build-isolation", "--python", sys.executable]
    run(Path(sys.executable).with_name("uv"), "build", "--offline", "--quiet", *python, "-o", target, ROOT, cwd=ROOT)
    [wheel] = target.glob("*.whl")
    return wheel


def install(wheel: Path, venv: Path) -> Path:
    """A new environment with the wheel, and the folder of its commands."""
    EnvBuilder(with_pip=False, symlinks=True).create(venv)
    scripts = venv / "bin"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", scripts / "python"]
    run(*pip, "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel, cwd=venv)
    own = run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=venv)
    # A folder named in a .pth file is searched, but its own .pth files (our editable install) are not heeded.
    (Path(own) / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def prove(scripts: Path, elsewhere: Path) -> None:
    found = run(scripts / "python", "-c", WHERE_FROM, cwd=elsewhere)
    if not Path(found).is_relative_to(scripts.parent):
        sys.exit(f"packages: hq was imported from {found} and not from the wheel")
    commands = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for command in commands:
        run(scripts / command, "--help", cwd=elsewhere)


def run(*command: object, cwd: Path) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"packages: {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
