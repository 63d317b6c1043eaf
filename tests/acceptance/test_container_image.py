"""The steps of the Containerfile over a bare Debian, without a container engine; the image runs as in Kubernetes.

Stages are overlays in a mount namespace. Debian stands for the images that the file names: it has the same Python.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from store.embedded import EtcdBinary
from tests.support.etcd import SharedEtcd, binary_of
from tests.support.played_machines import ROOT
from tests.support.reserved_port import KeptPort
from tests.support.sample_instances import eventually

FILE: Final = ROOT / "deploy/container/Containerfile"
DEBOOTSTRAP: Final = os.environ.get("DEBOOTSTRAP") or shutil.which("debootstrap")
TOOLS: Final = ("unshare", "mount", "chroot")
# What the builders need of the machine to fetch packages, and the one of Go.
SHARED: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs")
GO: Final[dict[str, str]] = {}
if shutil.which("go"):
    GO.update(json.loads(subprocess.check_output(["go", "env", "-json", "GOROOT", "GOMODCACHE"], text=True)))
NOBODY: Final = "65532:65532"

pytestmark = [
    pytest.mark.night,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not GO, reason="there is no go, which etcd is built with"),
    pytest.mark.skipif(DEBOOTSTRAP is None, reason="debootstrap is not installed"),
    pytest.mark.skipif(os.geteuid() != 0 or not all(map(shutil.which, TOOLS)), reason="it takes root"),
]


def in_mounts(*steps: str) -> list[str]:
    """The command line of a shell whose mounts are its own."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(steps)]


def do(*steps: str) -> str:
    outside = {name: value for name, value in os.environ.items() if name != "TMPDIR"}  # which is not there inside
    done = subprocess.run(
        in_mounts(*steps), env=outside, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{steps[-1]}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@dataclass
class Stage:
    """The files of one FROM: a base that stays as it is, and what was changed in it."""

    base: Path
    folder: Path
    workdir: str = "/"
    user: str = "0:0"
    start: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("changed", "work", "root"):
            (self.folder / name).mkdir(parents=True)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def mount(self, *, is_read_only: bool = False) -> str:
        """A step: its files at `root`."""
        changed, base = self.folder / "changed", self.base
        options = f"ro,lowerdir={changed}:{base}"
        if not is_read_only:
            options = f"lowerdir={base},upperdir={changed},workdir={self.folder / 'work'}"
        return f"mount -t overlay overlay -o {options} {self.root}"

    def run(self, command: str) -> None:
        given = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.variables.items())
        inside = f"mkdir -p {self.workdir}; cd {self.workdir}; export {given or 'LANG=C'}; {command}"
        shared = [_share(one, self.root) for one in (*SHARED, *GO.values())]
        devices = [f"mount -t proc proc {self.root}/proc", f"mount --bind /dev {self.root}/dev"]
        do(self.mount(), *devices, *shared, f"chroot {self.root} sh -ec {shlex.quote(inside)}")

    def copy(self, sources: list[Path], target: str) -> None:
        to = self.root / (target if target.startswith("/") else f"{self.workdir}/{target}").lstrip("/")
        copies = [f"cp -a {one}/. {to}/" if one.is_dir() else f"cp -a {one} {to}" for one in sources]
        is_file = len(sources) == 1 and not sources[0].is_dir() and target != "."
        do(self.mount(), f"mkdir -p {to.parent if is_file else to}", *copies)


def _share(path: str, root: Path) -> str:
    """A step: a file or folder of this machine at its own place in `root`, if there is one."""
    make = (
        f"mkdir -p {root}{path}" if Path(path).is_dir() else f"mkdir -p {root}{Path(path).parent}; touch {root}{path}"
    )
    return f"if [ -e {path} ]; then {make}; mount --bind {path} {root}{path}; fi"


class Builder:
    """Does what the Containerfile says, line by line.

    Attributes:
        stages: as far as they have got, by name; the last one has none: "image".
    """

    def __init__(self, folder: Path, base: Path, given: dict[str, str]) -> None:
        self.stages: dict[str, Stage] = {}
        self._folder, self._base, self._given = folder, base, given
        self._stage: Stage | None = None
        self._context = folder / "context"
        self._context.mkdir()
        subprocess.run(f"git -C {ROOT} archive HEAD | tar -x -C {self._context}", shell=True, check=True)
        for name in FILE.with_name("Containerfile.dockerignore").read_text().split():
            shutil.rmtree(self._context / name, ignore_errors=True)

    def build(self) -> Stage:
        text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", "")
        for line in filter(None, map(str.strip, text.splitlines())):
            word, _, rest = line.partition(" ")
            getattr(self, f"_do_{word.lower()}")(rest)
        return self.stages["image"]

    @property
    def stage(self) -> Stage:
        assert self._stage is not None
        return self._stage

    def _do_arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        if self._stage is not None:
            self._stage.variables[name] = self._given.get(name, default)

    def _do_from(self, rest: str) -> None:
        base, _, name = rest.partition(" AS ")
        name = name or "image"
        self._stage = self.stages[name] = Stage(self._base, self._folder / name)
        if base == "${GO}":
            self._stage.variables = {**GO, "PATH": f"{GO['GOROOT']}/bin:/usr/bin:/bin"}

    def _do_workdir(self, rest: str) -> None:
        self.stage.workdir = rest

    def _do_env(self, rest: str) -> None:
        self.stage.variables |= dict(one.split("=", 1) for one in shlex.split(rest))

    def _do_user(self, rest: str) -> None:
        self.stage.user = rest

    def _do_start(self, rest: str) -> None:
        self.stage.start += json.loads(rest)

    _do_entrypoint = _do_cmd = _do_start

    def _do_nothing(self, rest: str) -> None:
        """What only describes."""

    _do_label = _do_expose = _do_nothing

    def _do_run(self, rest: str) -> None:
        self.stage.run(rest)

    def _do_copy(self, rest: str) -> None:
        *sources, target = rest.split()
        root = self._context
        if sources[0].startswith("--from="):
            root = self.stages[sources.pop(0).removeprefix("--from=")].folder / "changed"
        self.stage.copy([root / one.lstrip("/") for one in sources], target)


@pytest.fixture(scope="session")
def etcd_binary() -> EtcdBinary:
    """One version: the image is the same."""
    return binary_of("3.5")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("image")
    base = folder / "debian"
    if ready := os.environ.get("DEBIAN_ROOT"):
        base = Path(ready)
    else:
        packages = "--include=python3,python3-venv,ca-certificates"
        do(f"{DEBOOTSTRAP} --variant=minbase {packages} stable {base} http://deb.debian.org/debian")
    python = base / "usr/bin/python"
    if not python.exists():
        python.symlink_to("python3")
    return Builder(folder, base, {"COMPILE": "0"}).build()


@contextmanager
def running(image: Stage, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The image with a root that nobody writes to, as its user, without a right."""
    names = {"PATH": "/opt/hq/bin:/usr/bin:/bin", **variables}
    words = ["env", "-i", *(f"{name}={value}" for name, value in names.items()), *command]
    chroot = f"exec chroot --userspec={image.user} {image.root} {shlex.join(words)}"
    with subprocess.Popen(
        in_mounts(image.mount(is_read_only=True), f"mount -t proc proc {image.root}/proc", chroot),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=30)


def output_of(image: Stage, *command: str) -> str:
    with running(image, *command) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    return out


def test_every_command_of_the_image_runs_as_nobody_over_a_read_only_file_system(image: Stage) -> None:
    assert image.user == NOBODY
    assert image.start == ["hq", "serve"]
    assert image.variables["PATH"].startswith("/opt/hq/bin:")
    attempt = "id -u; touch /opt/hq/x 2>&1 || true; touch /tmp/x 2>&1 || true; grep CapEff /proc/self/status"
    uid, *refused, rights = output_of(image, "sh", "-c", attempt).splitlines()
    assert (uid, rights.split()[-1]) == ("65532", "0" * 16)
    assert all("Read-only file system" in line for line in refused)
    version = (ROOT / "VERSION").read_text().strip()
    for name in ("hq", "cms", "nanny", "walle", "hqctl", "instancectl", "hq-gateway", "hq-console", "hq-recorder"):
        assert version in output_of(image, name, "--version"), name
    assert "etcd Version: 3" in output_of(image, "hq-etcd", "--version")
    assert "No module named pip" in output_of(image, "sh", "-c", "/opt/hq/bin/python -m pip 2>&1 || true")


async def test_the_image_serves_without_a_place_to_write(image: Stage, etcd: SharedEtcd) -> None:
    grpc, http = (f"127.0.0.1:{KeptPort().number}" for _ in range(2))
    variables = {"HQ_ETCD": etcd.endpoint, "HQ_PREFIX": etcd.prefix, "HQ_GRPC": grpc, "HQ_HTTP": http}
    with running(image, *image.start, **variables) as process:

        def is_ready() -> bool:
            assert process.poll() is None, process.stdout and process.stdout.read()
            try:
                with urllib.request.urlopen(f"http://{http}/readyz", timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        await eventually(is_ready, 60.0, "the image to serve")
