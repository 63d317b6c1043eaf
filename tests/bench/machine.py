"""What a measurement was taken on: machine, versions, commit. Stands at the head of every result."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

from serving import compiled
from store.embedded import EtcdBinary
from tests.bench import tools

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("grpcio", "protobuf", "uvloop", "uvicorn", "httptools", "aetcd")


def header(etcd: EtcdBinary, *, quick: bool, rounds: int, seconds: float) -> dict[str, str]:
    """Pairs of words, in the order to show them."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "machine": f"{os.cpu_count()} cores, {_model()}, {_memory_gib():.0f} GiB, Linux {platform.release()}",
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "python": f"{platform.python_version()} ({sys.implementation.name}), {versions}",
        "transport": f"{compiled.form()}, unless said otherwise",
        "etcd": ".".join(map(str, etcd.version)) + ", one member on the same machine unless said otherwise",
        "security": "off, but in the cases that are named after it",
        "load": ", ".join(f"{tool} {version}" for tool, version in tools.check().items()),
        "rounds": f"{rounds} interleaved rounds of {seconds:g} s{', QUICK' if quick else ''}",
    }


def _commit() -> str:
    def git(*arguments: str) -> str:
        said = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return said.stdout.strip()

    changed = "" if not git("status", "--porcelain", "-uno") else " and changes that are not committed"
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def _model() -> str:
    for row in Path("/proc/cpuinfo").read_text().splitlines():
        if row.startswith("model name"):
            return row.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
