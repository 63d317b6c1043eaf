"""The steps of test_production.py, in order, on machines that they share: in namespaces of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from hq.installation.tokens import KID
from hqclient.client import Client
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.errors import HqApiError
from serving.storage.tls import EtcdTls
from store.etcd import EtcdConfig, EtcdStore
from store.port import Unavailable
from tests.support.etcd import binary_of
from tests.support.played_machines import ROOT, PlayedMachines
from tests.support.sample_instances import eventually
from tests.support.shipped import ask, environment, sign_in

PAGE: Final = (ROOT / "docs" / "production.md").read_text()
HQ: Final = {"hq-1": "10.0.0.1", "hq-2": "10.0.0.2", "hq-3": "10.0.0.3"}
NODE: Final = {"node-1": "10.0.0.11"}
# Unit, port of its pages, a call.
SERVERS: Final = (
    ("hq", 7080, "hq.v1.InstanceService/CountInstances"),
    ("hq-federated", 7180, "hq.v1.InstanceService/CountInstances"),
    ("hq-cms", 7280, "cms.v1.CmsService/ListBudgets"),
    ("hq-nanny", 7380, "nanny.v1.NannyService/ListServices"),
    ("hq-walle", 7480, "walle.v1.WalleService/ListProjects"),
    ("hq-recorder", 7880, "history.v1.HistoryService/ListEvents"),
)
USERS: Final = {
    "hq": "hq serve",
    "hq-etcd": "etcd",
    "hq-federated": "hq-federated",
    "hq-cms": "cms serve",
    "hq-nanny": "nanny serve",
    "hq-walle": "walle serve",
    "hq-console": "hq-console serve",
    "hq-recorder": "hq-recorder serve",
    "hq-gateway": "hq-gateway dns",
}
PATIENCE_S: Final = 90.0

pytestmark = pytest.mark.timeout(400)


@dataclass
class Operators:
    """The operators' machine: its commands, and the folder that `hq init` made."""

    folder: Path
    machines: PlayedMachines

    @property
    def ca(self) -> Path:
        return self.folder / "ams/secret/server-ca.crt"

    @property
    def token(self) -> str:
        return (self.folder / "ams/tokens/admin.token").read_text().strip()

    def run(self, script: str) -> str:
        """Run it as it stands; it has to end with 0."""
        path = os.pathsep.join((str(self.machines.tools), str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self.folder,
            env={**environment(), "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    async def run_aside(self, script: str) -> str:
        return await asyncio.to_thread(self.run, script)

    def client(self, *addresses: str) -> Client:
        files = CredentialFiles(str(self.ca), "", "", str(self.folder / "ams/tokens/admin.token"))
        return Client([f"{address}:7071" for address in addresses], credentials=Credentials(files))

    async def until(self, machine: str, unit: str, holds: Callable[[], Awaitable[object]], what: str) -> None:
        try:
            await eventually(holds, PATIENCE_S, f"{unit} of {machine} {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.machines.log(machine, unit)}") from None

    async def until_ready(self, machine: str, unit: str, url: str) -> None:
        async def is_ready() -> bool:
            return (await asyncio.to_thread(ask, f"{url}/readyz", self.ca))[0] == 200

        await self.until(machine, unit, is_ready, "to be ready")


@pytest.fixture(scope="module")
def operators() -> Iterator[Operators]:
    with tempfile.TemporaryDirectory(prefix="hq-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "played").mkdir()
        machines = PlayedMachines(folder / "played", Path(binary_of("3.5").path))
        for machine, address in (HQ | NODE).items():
            machines.add(machine, address)
        yield Operators(folder, machines)
        machines.end()


def test_the_page_leads_to_a_service_that_another_machine_finds(operators: Operators) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    said = operators.run("\n".join(blocks))
    assert said.endswith("hello from node-1\n")
    assert '"Address": "10.0.0.11"' in said or '"Address":"10.0.0.11"' in said


def test_nothing_that_was_written_is_written_again(operators: Operators) -> None:
    before = {path: path.read_bytes() for path in (operators.folder / "ams").rglob("*") if path.is_file()}
    assert operators.run("hq init ams").startswith("ams: wrote 0 certificates, 0 tokens, 0 other files")
    assert operators.run("hq init renew ams") == ""
    assert {path: path.read_bytes() for path in (operators.folder / "ams").rglob("*") if path.is_file()} == before


async def test_every_server_answers_only_those_who_may_ask_and_runs_as_a_user_of_its_own(operators: Operators) -> None:
    for address in HQ.values():
        await operators.run_aside(f"ssh root@{address} systemctl enable --now hq-federated hq-gateway@xds")
    for machine, address in HQ.items():
        for unit, port, call in SERVERS:
            url = f"https://{address}:{port}"
            await operators.until_ready(machine, unit, url)
            answer = await asyncio.to_thread(ask, f"{url}/{call}", operators.ca, operators.token, {})
            assert answer[0] == 200, (unit, answer, operators.machines.log(machine, unit))
            assert (await asyncio.to_thread(ask, f"{url}/{call}", operators.ca, "", {}))[0] == 401
        await operators.until_ready(machine, "hq-console", f"https://{address}:7580")
        assert "ops/ada" in await sign_in(f"https://{address}:7580", operators.ca, operators.token, f"{address}:7580")
    users = operators.run("ssh root@10.0.0.2 ps -eo user:20,args")
    for user, command in USERS.items():
        assert re.search(rf"^{user} .*/{command}", users, re.MULTILINE), (user, users)
    for name in ("hq", "hq-cms", "hq-etcd"):
        refused = f"! ssh root@10.0.0.1 setpriv --reuid hq-nanny --regid hq-nanny --init-groups cat /etc/{name}/tls.key"
        assert operators.run(refused) == ""
    units = ("hq", "hq-federated", "hq-cms", "hq-nanny", "hq-walle", "hq-recorder", "hq-gateway@xds", "hq-gateway@dns")
    for unit in units:
        for machine in HQ:
            log = operators.machines.log(machine, unit)
            assert "it is started again" not in log, (machine, unit, log)
    denied = re.findall(r'.*"deny".*', operators.machines.path("hq-1", "/var/log/hq/audit.log").read_text())
    assert [line for line in denied if "spiffe" in line] == []


def test_once_operator_env_was_read_each_command_asks_the_installation(operators: Operators) -> None:
    asked = ("hqctl status", "hqctl disruptions", "hqctl get projects", "nanny service list", "walle hosts list")
    operators.run(f". ams/operator.env; {' && '.join(asked)} && hqctl history events hello-1")


def test_a_token_counts_only_at_the_servers_that_it_lists(operators: Operators) -> None:
    key = f"--key ams/secret/token.key --kid {KID}"
    token = operators.run(f"hqctl token sign {key} --subject ops/ada --audience cms --for 5m").strip()
    for unit, port, call in SERVERS:
        answer = ask(f"https://10.0.0.1:{port}/{call}", operators.ca, token, {})
        assert answer[0] == (200 if unit == "hq-cms" else 401), (unit, answer)


def test_an_agents_certificate_does_not_open_etcd(operators: Operators) -> None:
    asks = "curl -s --cacert ams/secret/etcd-ca.crt https://10.0.0.1:2379/health"
    etc = "ams/machines/{}/etc/hq/{}"
    for proof, is_let_in in ((etc.format("hq-1", "etcd"), True), (etc.format("node-1", "client"), False)):
        call = f"{asks} --cert {proof}.crt --key {proof}.key"
        assert operators.run(call if is_let_in else f"! {call}").startswith('{"health":"true"') is is_let_in


async def test_a_controller_opens_its_own_records_in_etcd_only(operators: Operators) -> None:
    etc = operators.folder / "ams/machines/hq-1/etc/hq-nanny"
    tls = EtcdTls(str(etc / "etcd-ca.crt"), str(etc / "etcd.crt"), str(etc / "etcd.key"), time.monotonic)
    store = EtcdStore(EtcdConfig(("10.0.0.1:2379",), tls))
    try:
        assert (await store.page(b"/nanny/v1/", b"/nanny/v10", revision=0, limit=1)).records
        with pytest.raises(Unavailable, match="permission denied"):
            await store.page(b"/hq/v1/", b"/hq/v10", revision=0, limit=1)
    finally:
        await store.close()


@dataclass
class Load:
    """Lookups and reports, one after the other, and what failed."""

    calls: int = 0
    failures: list[str] = field(default_factory=list)

    async def run(self, client: Client) -> None:
        while True:
            try:
                await client.get("hello-1")
                self.calls += 1
            except HqApiError as error:
                self.failures.append(f"{time.time():.1f} {error}")
            await asyncio.sleep(0.005)


@asynccontextmanager
async def load_on(operators: Operators, *addresses: str) -> AsyncIterator[Load]:
    """Two clients call all the while."""
    load = Load()
    async with operators.client(*addresses) as one, operators.client(*reversed(addresses)) as other:
        tasks = [asyncio.create_task(load.run(client)) for client in (one, other)]
        try:
            await eventually(lambda: load.calls > 10, 20, "calls to begin")
            yield load
            before = load.calls
            await eventually(lambda: load.calls > before + 10, 20, "calls to go on")
        finally:
            for task in tasks:
                task.cancel()


def serial_at(address: str, port: int, ca: Path) -> str:
    """Serial number of the certificate that a server shows to new connections."""
    context = ssl.create_default_context(cafile=str(ca))
    with (
        socket.create_connection((address, port), 10) as plain,
        context.wrap_socket(plain, server_hostname=address) as tls,
    ):
        held = tls.getpeercert()
        assert held is not None
        return str(held["serialNumber"])


async def test_everything_is_renewed_under_load_and_no_call_fails(operators: Operators) -> None:
    addresses = [
        (address, port) for address in HQ.values() for port in (7071, 7072, 7080, 7180, 7271, 7371, 7471, 7580)
    ]
    before = [serial_at(*each, operators.ca) for each in addresses]
    keys = {path: path.read_bytes() for path in (operators.folder / "ams").rglob("*.key")}
    async with load_on(operators, *HQ.values()) as load:
        await operators.run_aside("hq init renew ams --all && systemctl start hq-renew.service")

        async def is_renewed() -> bool:
            return all(serial_at(*each, operators.ca) != old for each, old in zip(addresses, before, strict=True))

        await eventually(is_renewed, 30, "all servers to show their new certificates")
        # Instances go on being reported, by an agent with a new certificate, and are found.
        await operators.run_aside(". ams/operator.env; hqctl wait hello-1 --for ready --timeout 30s")
    assert load.failures == []
    assert load.calls > 100
    await operators.run_aside("ssh root@10.0.0.3 systemctl restart hq-etcd hq")
    await operators.until_ready("hq-3", "hq", "https://10.0.0.3:7080")
    assert {path: path.read_bytes() for path in keys} == keys


async def test_somebody_who_is_revoked_is_refused_at_once_and_let_in_again(operators: Operators) -> None:
    call = "https://10.0.0.3:7080/hq.v1.InstanceService/CountInstances"

    async def status() -> int:
        return (await asyncio.to_thread(ask, call, operators.ca, operators.token, {}))[0]

    file = operators.folder / "ams/config/revoked.yaml"
    kept = file.read_text()
    file.write_text("subjects: [ops/ada]\n")
    await operators.run_aside("hq init ams && ams/distribute")

    async def is_refused() -> bool:
        return await status() == 401

    await eventually(is_refused, 10, "ops/ada to be refused")
    file.write_text(kept)
    await operators.run_aside("hq init ams && ams/distribute")

    async def is_let_in() -> bool:
        return await status() == 200

    await eventually(is_let_in, 10, "ops/ada to be let in")


async def test_one_added_machine_runs_instances_and_another_a_replica(operators: Operators) -> None:
    operators.machines.add("node-2", "10.0.0.12")
    operators.machines.add("hq-4", "10.0.0.4")
    await operators.run_aside("hq init add-node ams node-2=10.0.0.12 && hq init add-node ams hq-4=10.0.0.4 --hq")
    await operators.run_aside("ams/distribute")
    await operators.run_aside("ssh root@hq-4 systemctl enable --now hq")
    await operators.run_aside("ssh root@node-2 systemctl enable --now instancectl-node")
    await operators.until_ready("hq-4", "hq", "https://10.0.0.4:7080")
    page = (operators.folder / "hello.yaml").read_text()
    page = page.replace("hello-1", "hello-2").replace("node-1", "node-2").replace("10.0.0.11", "10.0.0.12")
    (operators.folder / "hello-2.yaml").write_text(page)
    await operators.run_aside(". ams/operator.env; hqctl apply -f hello-2.yaml")
    await operators.run_aside(". ams/operator.env; hqctl wait hello-2 --for ready --timeout 60s")
    async with operators.client("10.0.0.4") as client:
        assert (await client.get("hello-2")).instance.spec.node_name == "node-2"


async def test_a_second_location_is_found_through_the_federation_of_the_first(operators: Operators) -> None:
    operators.machines.add("fra-1", "10.0.1.1")
    await operators.run_aside("hq init fra --join ams --location fra --node fra-1=10.0.1.1 --etcd-on hq-nodes")
    await operators.run_aside("fra/distribute && ams/distribute")
    await operators.run_aside("ssh root@fra-1 systemctl enable --now hq-etcd hq hq-federated")
    for address in ("10.0.0.1", "10.0.1.1"):
        await operators.until_ready("fra-1", "hq-federated", f"https://{address}:7180")
    page = (operators.folder / "hello.yaml").read_text().replace("hello-1", "hello-fra")
    (operators.folder / "hello-fra.yaml").write_text(page)
    await operators.run_aside(". fra/operator.env; hqctl apply -f hello-fra.yaml")

    async def both_answer() -> bool:
        found = await operators.run_aside(". ams/operator.env; hqctl --server 10.0.0.1:7171 find hello -o json")
        return {one["meta"]["cluster"] for one in json.loads(found)["items"]} == {"ams", "fra"}

    await operators.until("hq-1", "hq-federated", both_answer, "to find both locations")


async def test_one_of_three_machines_is_lost_and_everything_goes_on(operators: Operators) -> None:
    operators.machines.unplug("hq-1")
    async with operators.client(*HQ.values()) as client:

        async def is_found() -> bool:
            return bool((await client.get("hello-1")).instance.meta.id)

        await eventually(is_found, 60, "HQ to answer without hq-1")
    await operators.run_aside(". ams/operator.env; hqctl wait hello-1 hello-2 --for ready --timeout 60s")
    written = (operators.folder / "hello-2.yaml").read_text().replace("8090", "8091")
    (operators.folder / "hello-2.yaml").write_text(written)
    await operators.run_aside(". ams/operator.env; hqctl apply -f hello-2.yaml")

    async def is_called() -> bool:
        return (await asyncio.to_thread(ask, "http://10.0.0.12:8091/", operators.ca))[0] == 200

    await operators.until("node-2", "instancectl-node", is_called, "to run what was written")
    consul = await operators.run_aside(
        "ssh root@10.0.0.2 curl -s 'http://127.0.0.1:8500/v1/health/service/hello?passing'"
    )
    assert '"hello-1"' in consul
    operators.machines.replug("hq-1")
    await operators.until_ready("hq-1", "hq", "https://10.0.0.1:7080")
