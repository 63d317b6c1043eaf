"""Build both distributions, install each into an environment of its own, and run what it promises from there.

`hq-client` gets only what it depends on; `hq-registry` gets `hq-client` and everything else, and runs every
command. Third-party packages are those of .venv, which `make setup` installed as locked: nothing is downloaded.
"""

import shutil
import sys
import sysconfig
import tempfile
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from venv import EnvBuilder

from packaging.requirements import Requirement

from tools.packages import CLIENT, ROOT, build, run

CLIENT_PROGRAM = """
import asyncio, sys
import hqclient
from hqclient import Client, Discovery
from hqpb.v1 import service_pb2
for name in hqclient.__all__:
    getattr(hqclient, name)
async def main():
    async with Client(["127.0.0.1:1"]) as client, Discovery(["127.0.0.1:1"]):
        service_pb2.InstanceFilter(service_id=["web"])
asyncio.run(main())
needless = {"click", "yaml", "rich", "jwt", "uvloop", "hq", "serving", "store"} & sys.modules.keys()
assert not needless, needless
print(hqclient.__file__)
"""
SERVER_PROGRAM = "import hq, hqpb.v1.service_pb2, store, serving, federated, hqclient; print(hq.__file__)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        client, server = build(Path(folder) / "dist")
        check_client(client, Path(folder) / "client")
        check_server((client, server), Path(folder) / "server")
    print(f"packages: {client.name} and {server.name} build from their sdists, install apart and run")


def check_client(wheel: Path, venv: Path) -> None:
    """Check that hq-client runs with its own dependencies beside it and nothing else."""
    scripts, packages = environment(venv, wheel)
    for requirement in tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["dependencies"]:
        copy_with_dependencies(Requirement(requirement).name, packages, set())
    found = run(scripts / "python", "-c", CLIENT_PROGRAM, cwd=venv)
    check_origin(found, venv)


def check_server(wheels: tuple[Path, ...], venv: Path) -> None:
    """Check that every command starts."""
    scripts, packages = environment(venv, *wheels)
    # A folder named in a .pth file is searched, but its own .pth files (our editable install) are not heeded.
    (packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    check_origin(run(scripts / "python", "-c", SERVER_PROGRAM, cwd=venv), venv)
    for command in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]:
        run(scripts / command, "--help", cwd=venv)


def environment(venv: Path, *wheels: Path) -> tuple[Path, Path]:
    """A new environment with the wheels alone: the folders of its commands and of its packages."""
    EnvBuilder(with_pip=False, symlinks=True).create(venv)
    scripts = venv / "bin"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", scripts / "python"]
    run(*pip, "install", "--no-index", "--no-deps", "--disable-pip-version-check", *wheels, cwd=venv)
    own = run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=venv)
    return scripts, Path(own)


def copy_with_dependencies(name: str, target: Path, seen: set[str]) -> None:
    """Copy a distribution of .venv, and what it needs without extras."""
    if name in seen:
        return
    seen.add(name)
    found = distribution(name)
    tops = {file.parts[0] for file in found.files or () if ".." not in file.parts and file.parts[0] != "__pycache__"}
    for top in tops:
        source = Path(str(found.locate_file(top)))
        if source.is_dir():
            shutil.copytree(source, target / top, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target / top)
    for text in found.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            copy_with_dependencies(requirement.name, target, seen)


def check_origin(found: str, venv: Path) -> None:
    if not Path(found).is_relative_to(venv):
        sys.exit(f"packages: imported from {found} and not from the wheel")


if __name__ == "__main__":
    main()
