"""A real Prometheus Alertmanager sends what it sends: grouped, repeated and resolved alerts."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.support.reserved_port import KeptPort
from tests.support.walle.running import Running, running
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_MAINTENANCE, Check, Machine
from wallepb.v1.project_pb2 import Project

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(PROGRAM is None, reason="needs alertmanager (Debian: apt-get install prometheus-alertmanager)"),
]


class Alertmanager:
    """Its API of alerts, as Prometheus calls it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._began: dict[tuple[str, str], datetime] = {}

    async def alert(self, host: str, disk: str = "sda") -> None:
        self._began[host, disk] = datetime.now(UTC)
        await self._send(host, disk, self._began[host, disk] + timedelta(hours=1))

    async def resolve(self, host: str, disk: str = "sda") -> None:
        await self._send(host, disk, datetime.now(UTC))

    async def _send(self, host: str, disk: str, ends: datetime) -> None:
        alert = {
            "labels": {"alertname": "DiskFails", "check": "disk", "host": host, "disk": disk},
            "annotations": {"summary": f"{disk} fails"},
            "startsAt": self._began[host, disk].isoformat(),
            "endsAt": ends.isoformat(),
        }
        async with httpx.AsyncClient(verify=False) as http:
            (await http.post(f"{self._url}/api/v2/alerts", json=[alert])).raise_for_status()


async def is_ready(http: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await http.get(url)).is_success
    except httpx.TransportError:
        return False


@asynccontextmanager
async def alertmanager(folder: Path, walle: Running) -> AsyncIterator[Alertmanager]:
    """It groups all alerts of a check, and sends again after two seconds what goes on."""
    times = {"group_wait": "100ms", "group_interval": "300ms", "repeat_interval": "2s"}
    hook = {"url": f"http://{walle.address}/walle.v1.WalleService/TakeAlerts", "send_resolved": True}
    config = {
        "route": {"receiver": "wall-e", "group_by": ["check"], **times},
        "receivers": [{"name": "wall-e", "webhook_configs": [hook]}],
    }
    (folder / "alertmanager.yml").write_text(json.dumps(config))  # JSON is YAML
    kept = KeptPort()  # held until the end: the program binds it some time later
    url, log = f"127.0.0.1:{kept.number}", (folder / "log").open("wb")
    flags = (f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}")
    process = await asyncio.create_subprocess_exec(
        *(str(PROGRAM), *flags, f"--web.listen-address={url}", "--cluster.listen-address="), stdout=log, stderr=log
    )
    try:
        async with httpx.AsyncClient(verify=False) as http:
            while not await is_ready(http, f"http://{url}/-/ready"):
                assert process.returncode is None, (folder / "log").read_text()
                await asyncio.sleep(0.1)
        yield Alertmanager(f"http://{url}")
    finally:
        process.kill()
        await process.wait()
        log.close()


def disk_of(walle: Running, host: str) -> Check:
    return next((check for check in walle.of(host).check if check.name == "disk"), Check())


def faults_of(walle: Running, host: str) -> dict[str, int]:
    """By fingerprint, when each was heard first, to the hour."""
    return {one.fingerprint: one.at_ms for one in disk_of(walle, host).said if one.failing}


@pytest.mark.timeout(120)
async def test_grouped_repeated_and_resolved_alerts_of_a_real_alertmanager_become_reports(tmp_path: Path) -> None:
    async with running() as walle:
        await walle.project(Project(id="web"))
        hosts = [pb.AddHostRequest(host=name, project="web", ignore_cms=True) for name in ("h1", "h2")]
        machines = [Machine(name=one.host, project=["web"]) for one in hosts]
        await walle.call(pb.ImportMachinesRequest(machines=machines, hosts=hosts))
        for host in ("h1", "h2"):  # nothing is repaired there: reports are what this is about
            await walle.until(lambda host=host: not walle.of(host).HasField("operation"), "it is in use")  # type: ignore[misc]
            await walle.call(pb.SetHostStateRequest(host=host, state=HOST_STATE_MAINTENANCE))
        async with alertmanager(tmp_path, walle) as alerts:
            for host, disk in (("h1", "sda"), ("h1", "sdb"), ("h2", "sda")):
                await alerts.alert(host, disk)
            await walle.until(lambda: len(faults_of(walle, "h1")) == 2, "each disk of h1 is a fault of its own")
            await walle.until(lambda: disk_of(walle, "h2").failing, "h2 is in the same group")
            assert disk_of(walle, "h1").failing
            first = faults_of(walle, "h1")
            await alerts.alert("nobody")
            await alerts.resolve("h1", "sda")
            await walle.until(lambda: len(faults_of(walle, "h1")) == 1, "sda is well again")
            assert disk_of(walle, "h1").failing, "sdb still fails"
            assert faults_of(walle, "h1").items() <= first.items(), "what is repeated is not news"
            await alerts.resolve("h1", "sdb")
            await walle.until(lambda: not disk_of(walle, "h1").failing, "all disks of h1 are well")
            assert disk_of(walle, "h2").failing
            await alerts.alert("h1", "sda")
            await walle.until(lambda: disk_of(walle, "h1").failing, "it fails anew")
