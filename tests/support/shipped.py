"""What ships in deploy/, on this machine: ports of hosts become free ones, absolute paths a folder, machines processes.

The files are those that the commands of deploy/README.md make.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx

from store.embedded import EtcdBinary
from tests.console.scene import Browser
from tests.support.reserved_port import quiet_port
from tests.support.sample_instances import eventually

ROOT: Final = Path(__file__).resolve().parents[2]
_PAGE: Final = (ROOT / "deploy" / "README.md").read_text()
_ADDRESS: Final = re.compile(r"(?<!\w)((?:\d+\.){3}\d+|[a-z][\w.-]*):(\d+)\b")
_IN_LOCATION: Final = re.compile(r"hq\.(\w+)\.example")
_OURS: Final = ("HQ_", "CMS_", "NANNY_", "WALLE_", "ETCD")
_READY_S: Final = 90.0


def blocks(chapter: str) -> list[str]:
    """The shell commands of a chapter of the page."""
    text = _PAGE[_PAGE.index(f"## {chapter}") :]
    return re.findall(r"^```sh\n(.*?)^```", text[: text.index("\n## ", 1)], re.MULTILINE | re.DOTALL)


class Ports:
    """A free port of this machine for each port of each host that a file names."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], int] = {}

    def port(self, host: str, number: int | str) -> int:
        """The one that stands for it, always the same."""
        wanted = (host, str(number))
        while wanted not in self._given:
            port = quiet_port()
            if port not in self._given.values():
                self._given[wanted] = port
        return self._given[wanted]

    def localized(self, text: str, own: str, location: str = "") -> str:
        """The text with these ports. Addresses in digits are those of the host `own`.

        `location`: whose short names these are; `hq.NAME.example` is `hq` there.
        """

        def local(found: re.Match[str]) -> str:
            name, number = found.groups()
            if name[0].isdigit():
                return f"127.0.0.1:{self.port(own, number)}"
            elsewhere = _IN_LOCATION.fullmatch(name)
            if elsewhere is not None:
                name = f"hq.{elsewhere[1]}"
            elif location and not name.endswith(".example"):
                name = f"{name}.{location}"
            return f"localhost:{self.port(name, number)}"

        return _ADDRESS.sub(local, text)


def environment() -> dict[str, str]:
    """This process's, without settings of our servers, and with our commands."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    modules = os.pathsep.join(str(ROOT / part) for part in ("", "proto", "clients"))
    return {**kept, "PATH": path, "PYTHONPATH": modules}


async def run_page(commands: list[str], folder: Path, **variables: str) -> str:
    """Run commands of the page as one script and return what they say; certificates are good for this machine, too."""
    return await shell(
        "\n".join(commands).replace("subjectAltName=", "subjectAltName=DNS:localhost,"), folder, **variables
    )


async def shell(script: str, folder: Path, **variables: str) -> str:
    """Run it, with our commands; it has to end with 0."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-e", "-c", script),
        cwd=folder,
        env={**environment(), **variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 0, said.decode()
    return said.decode()


def clone(folder: Path) -> Path:
    """A place with what the commands of the page take from a clone."""
    for part in ("deploy", "examples"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


class Machines:
    """Processes started from what ships. They end with the block `async with started(...)`."""

    def __init__(self, etcd: EtcdBinary, logs: Path) -> None:
        self._etcd, self._logs = etcd, logs
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str, words: list[str], env: Mapping[str, str]) -> None:
        """Start a command line of a unit or manifest; `name` is for people."""
        program = self._etcd.path if words[0].endswith("etcd") else Path(sys.executable).with_name(Path(words[0]).name)
        with (self._logs / f"{name}.log").open("wb") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                *(str(program), *words[1:]),
                env={**environment(), **env},
                cwd=self._logs,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def said(self, name: str) -> str:
        return (self._logs / f"{name}.log").read_text(errors="replace")

    async def until_ready(self, name: str, url: str, ca: Path) -> None:
        """Return when `/readyz` says ok; fails with what the process says."""

        async def is_ready() -> bool:
            assert self._running[name].returncode is None, f"{name} ended"
            return (await asyncio.to_thread(ask, f"{url}/readyz", ca))[0] == 200

        await self.until(name, is_ready, "to be ready")

    async def until(self, name: str, holds: Callable[[], Awaitable[object]], what: str) -> None:
        """Return when it holds; fails with what the process says."""
        try:
            await eventually(holds, _READY_S, f"{name} {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said(name)}") from None

    async def end(self) -> None:
        for process in self._running.values():
            if process.returncode is None:
                process.terminate()
        for process in self._running.values():
            try:
                await asyncio.wait_for(process.wait(), 30)
            except TimeoutError:
                process.kill()
                await process.wait()


@asynccontextmanager
async def started(etcd: EtcdBinary, logs: Path) -> AsyncIterator[Machines]:
    logs.mkdir()
    machines = Machines(etcd, logs)
    try:
        yield machines
    finally:
        await machines.end()


def ask(url: str, ca: Path, token: str = "", body: object = None) -> tuple[int, str]:
    """A GET, or a POST of JSON: status and body; 0 and the reason if there is no answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    if token:
        request.add_header("authorization", f"Bearer {token}")
    context = ssl.create_default_context(cafile=str(ca)) if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


async def sign_in(url: str, ca: Path, token: str, name: str = "console.example") -> str:
    """Sign in at the console as people do, by the name that its settings say; its first page."""
    trusted = ssl.create_default_context(cafile=str(ca))
    host = {"host": name}
    async with httpx.AsyncClient(trust_env=False, verify=trusted, headers=host, timeout=20) as http:
        browser = Browser(url, http)
        assert (await browser.submit("/signin", {"token": token, "to": "/"})).headers["location"] == "/"
        return (await browser.get("/")).text
