"""Does proto/ understand the messages of the newest release (RELEASES.md): on the wire, as JSON, and stored?"""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_ROW = re.compile(r"^\| (\S+) \| `([0-9a-f]{40})` \|$", re.MULTILINE)


def main() -> None:
    version, commit = newest((ROOT / "RELEASES.md").read_text())
    released = subprocess.run(
        ("git", "archive", commit, "buf.yaml", "proto"), cwd=ROOT, capture_output=True, check=False
    )
    if released.returncode:
        sys.exit(
            f"compatible: no commit {commit} of release {version} in this clone: {released.stderr.decode().strip()}\n"
            f"Run: git fetch --unshallow, or git fetch origin {commit}"
        )
    if broken := differences(ROOT, released.stdout):
        sys.exit(f"compatible: messages of release {version} are not understood any more:\n{broken}")
    print(f"compatible: proto/ understands the messages of release {version}")


def newest(text: str) -> tuple[str, str]:
    """Version and commit of the first row."""
    row = _ROW.search(text)
    if row is None:
        sys.exit("compatible: RELEASES.md has no row with a version and a commit of 40 digits")
    return row[1], row[2]


def differences(root: Path, released: bytes) -> str:
    """What root's buf.yaml forbids, a line each; `released`: a tar of the release's buf.yaml and proto/."""
    buf = Path(sysconfig.get_path("scripts")) / "buf"
    done = subprocess.run(
        (buf, "breaking", "--against", "-#format=tar"), cwd=root, input=released, capture_output=True, check=False
    )
    return (done.stdout + done.stderr).decode().strip() if done.returncode else ""


if __name__ == "__main__":
    main()
