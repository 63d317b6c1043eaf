"""Another version of HQ: a copy of the source tree with an extra field in two messages and another storage format.

Made from the tree as it stands, so it needs neither git history nor a network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
FIELD_NUMBER = 1000


def make_other_version(target: Path, *, storage_format: int, oldest_reader: int) -> Path:
    """A tree to start replicas from (ReplicaProcess, `root`).

    Its InstanceMeta and RevisionStatus have `string zone = 1000`; it says of the store that it is in `storage_format`,
    and that `oldest_reader` still understands it.
    """
    for package in ("hq", "serving", "store", "proto"):
        shutil.copytree(_ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    _add_field(target / "proto")
    epoch = target / "store" / "epoch.py"
    text, formats = re.subn(r"^FORMAT = \d+", f"FORMAT = {storage_format}", epoch.read_text(), flags=re.MULTILINE)
    text, readers = re.subn(r"oldest_reader=FORMAT", f"oldest_reader={oldest_reader}", text)
    assert (formats, readers) == (1, 1), "store/epoch.py looks different: mend this patch"
    epoch.write_text(text)
    return target


def _add_field(proto: Path) -> None:
    path = proto / "hqpb" / "v1" / "instance.proto"
    field = f"\\g<0>\n  // Where it is.\n  string zone = {FIELD_NUMBER};"
    text, places = re.subn(r"^message (InstanceMeta|RevisionStatus) \{", field, path.read_text(), flags=re.MULTILINE)
    assert places == 2, "instance.proto looks different: mend this patch"
    path.write_text(text)
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "hqpb/v1/instance.proto"]
    done = subprocess.run(command, cwd=proto, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
