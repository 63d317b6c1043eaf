"""Real counterparts, written by others: a Redfish emulator, a name server, a mail server. Each on a free port."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.asyncquery
import dns.message
import httpx
import pytest

from tests.support.reserved_port import quiet_port

NAMED = shutil.which("named") or shutil.which("named", path="/usr/sbin")
NO_NAMED = "needs BIND's name server: apt-get install bind9"
KEY = "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvbmx5IQ=="
ZONE = "cloud.example"


@asynccontextmanager
async def _process(*argv: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _until_open(port: int, process: asyncio.subprocess.Process) -> None:
    for _ in range(200):
        assert process.returncode is None, f"the counterpart ended with {process.returncode}"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    pytest.fail(f"nothing listens on port {port}")


@asynccontextmanager
async def redfish_emulator(directory: Path, *machines: str) -> AsyncIterator[str]:
    """sushy-tools' emulator with machines that are on; the URL of it. A restart takes it up to eleven seconds."""
    port, config = quiet_port(), directory / "emulator.conf"
    systems = [{"uuid": name, "name": name, "power_state": "On", "nics": []} for name in machines]
    config.write_text(f"SUSHY_EMULATOR_STATE_DIR = {str(directory)!r}\nSUSHY_EMULATOR_FAKE_SYSTEMS = {systems!r}\n")
    program = Path(sys.executable).parent / "sushy-emulator"
    argv = (str(program), "--fake", "--config", str(config), "-i", "127.0.0.1", "-p", str(port))
    async with _process(*argv) as process:
        await _until_open(port, process)
        yield f"http://127.0.0.1:{port}"


async def power_of(url: str, machine: str) -> str:
    async with httpx.AsyncClient(verify=False) as http:
        return str((await http.get(f"{url}/redfish/v1/Systems/{machine}")).json()["PowerState"])


@dataclass(frozen=True, slots=True)
class NameServer:
    port: int


@asynccontextmanager
async def name_server(directory: Path) -> AsyncIterator[NameServer]:
    """BIND with one zone, which a key may update."""
    assert NAMED is not None
    port = quiet_port()
    (directory / "zone").write_text(
        f"$TTL 60\n@ IN SOA ns.{ZONE}. root.{ZONE}. 1 3600 600 86400 60\n@ IN NS ns.{ZONE}.\nns IN A 127.0.0.1\n"
        "h1 IN A 10.0.0.99\n"
    )
    config = directory / "named.conf"
    config.write_text(
        f"""
options {{ directory "{directory}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
  pid-file none; session-keyfile "{directory}/session.key"; recursion no; dnssec-validation no; }};
controls {{ }};
key walle {{ algorithm hmac-sha256; secret "{KEY}"; }};
zone "{ZONE}" {{ type primary; file "{directory}/zone"; allow-update {{ key walle; }}; }};
"""
    )
    async with _process(NAMED, "-g", "-c", str(config)) as process:
        await _until_open(port, process)
        await _until_loaded(port)
        yield NameServer(port)


async def _until_loaded(port: int) -> None:
    """BIND listens before it has read its zones, and answers SERVFAIL until then."""
    async with asyncio.timeout(20):
        while (await dns.asyncquery.tcp(dns.message.make_query(ZONE, "SOA"), "127.0.0.1", port=port)).rcode():
            await asyncio.sleep(0.05)
