"""Build the distributions, `hq-client` and `hq-registry`, each from its own sdist: `python -m tools.packages DIR`.

`hq-client` is the library and its messages (`distributions/hq-client`); `hq-registry` is everything else, and
depends on it.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.gen_proto import write_types

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "distributions" / "hq-client"
CLIENT_PACKAGES = (ROOT / "clients" / "hqclient", ROOT / "proto" / "hqpb")
CLIENT_FILES = ("LICENSE", "VERSION")


def main() -> None:
    [target] = sys.argv[1:]
    for wheel in build(Path(target).resolve()):
        print(wheel)


def build(target: Path) -> tuple[Path, Path]:
    """The wheels of hq-client and of hq-registry, with the types of messages."""
    write_types()
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "hq-client"
        shutil.copytree(CLIENT, stage)
        for name in CLIENT_FILES:
            shutil.copy2(ROOT / name, stage)
        for package in CLIENT_PACKAGES:
            shutil.copytree(package, stage / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        return built(stage, target / "hq-client"), built(ROOT, target / "hq-registry")


def built(source: Path, target: Path) -> Path:
    """The wheel, made by way of the sdist, so that a file that the sdist lacks is found as well."""
    python = ["--no-build-isolation", "--python", sys.executable]
    run(
        Path(sys.executable).with_name("uv"), "build", "--offline", "--quiet", *python, "-o", target, source, cwd=source
    )
    [wheel] = target.glob("*.whl")
    return wheel


def run(*command: object, cwd: Path) -> str:
    """What the command prints; exits with all that it said if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"packages: {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
