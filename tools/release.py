"""Make a release of the current commit: `python -m tools.release DIR` (`make release`).

DIR gets the wheels and sdists, the list of third-party packages (SBOM, CycloneDX), the changelog's section, and
SHA256SUMS. Everything is built from a copy of the commit, not from the work tree, and has the commit's time: twice from
one commit gives the same files.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.packages import ROOT, run

_SECTION = re.compile(r"^## (?P<version>\S+?)(?:, [^\n]+)?\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    [target] = sys.argv[1:]
    commit = run("git", "rev-parse", "HEAD", cwd=ROOT)
    released, version = release(commit, Path(target).resolve())
    for path in sorted(released.iterdir()):
        print(path)
    print(f"release: {version} from {commit}")
    if "unreleased" in (released / "CHANGES.md").read_text().partition("\n")[0]:
        print("release: a rehearsal: CHANGELOG.md calls this version unreleased; RELEASES.md says what to do")


def release(commit: str, target: Path) -> tuple[Path, str]:
    """Everything of a release of the commit, in the folder; and its version."""
    if target.exists() and any(target.iterdir()):
        sys.exit(f"release: {target} is not empty: remove it, or name another folder (make release OUT=DIR)")
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "show", "-s", "--format=%ct", commit, cwd=ROOT)
    os.environ.pop(
        "SERVING_COMPILE", None
    )  # a compiled wheel fits one Python and one machine; the image compiles its own
    os.umask(0o022)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "hq"
        copy_commit(commit, tree)
        version = (tree / "VERSION").read_text().strip()
        run(sys.executable, "-m", "tools.packages", Path(folder) / "dist", cwd=tree)
        for path in (Path(folder) / "dist").glob("*/hq_*"):
            if path.name.endswith(".tar.gz"):
                repack(path, target / path.name, int(os.environ["SOURCE_DATE_EPOCH"]))
            else:
                shutil.copy2(path, target)
        (target / f"hq-registry-{version}.cdx.json").write_text(list_of_packages(tree, version))
        (target / "CHANGES.md").write_text(changes((tree / "CHANGELOG.md").read_text(), version))
    (target / "SHA256SUMS").write_text(checksums(target))
    return target, version


def copy_commit(commit: str, target: Path) -> None:
    target.mkdir()
    archive = subprocess.run(("git", "archive", commit), cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(("tar", "-x"), cwd=target, check=True, input=archive)


def repack(source: Path, target: Path, time_s: int) -> None:
    """The same archive, independent of when, where and by whom it was made: setuptools writes all of that into it."""
    content = io.BytesIO()
    with tarfile.open(source) as made, tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as plain:
        for member in sorted(made, key=lambda each: each.name):
            member.mtime, member.pax_headers = time_s, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            plain.addfile(member, made.extractfile(member) if member.isfile() else None)
    target.write_bytes(gzip.compress(content.getvalue(), mtime=time_s))


def list_of_packages(tree: Path, version: str) -> str:
    """The locked third-party packages of both wheels, as CycloneDX in JSON."""
    cyclonedx = Path(sys.executable).with_name("cyclonedx-py")
    flags = ("--output-reproducible", "--pyproject", "pyproject.toml")
    found = json.loads(run(cyclonedx, "requirements", *flags, "requirements/run.txt", cwd=tree))
    found["metadata"]["component"]["version"] = version  # pyproject.toml has it from VERSION
    return json.dumps(found, indent=2, sort_keys=True) + "\n"


def changes(changelog: str, version: str) -> str:
    """The section of the version, with its heading."""
    section = next((each for each in _SECTION.finditer(changelog) if each["version"] == version), None)
    if section is None:
        sys.exit(f"release: CHANGELOG.md has no section `## {version}`, the version in VERSION")
    return section[0].strip() + "\n"


def checksums(folder: Path) -> str:
    """Checksums in the format of `sha256sum --check`."""
    paths = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


if __name__ == "__main__":
    main()
