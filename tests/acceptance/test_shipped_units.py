"""Every unit in deploy/systemd starts, with the files that the commands of deploy/README.md make."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import dns.message
import dns.query
import pytest

from store.embedded import EtcdBinary
from tests.support.reserved_port import quiet_port
from tests.support.sample_instances import eventually
from tests.support.shipped import (
    ROOT,
    Machines,
    Ports,
    ask,
    blocks,
    clone,
    command_line,
    run_page,
    settings_file,
    shell,
    sign_in,
    started,
    unit_settings,
)

UNITS: Final = ROOT / "deploy" / "systemd"
# Unit, host, port, a call.
SERVERS: Final = (
    ("hq", "hq-1.east.example", 7080, "hq.v1.InstanceService/CountInstances"),
    ("hq", "hq-1.west.example", 7080, "hq.v1.InstanceService/CountInstances"),
    ("hq-federated", "federated-1.example", 7180, "hq.v1.InstanceService/CountInstances"),
    ("hq-cms", "cms-1.example", 7280, "cms.v1.CmsService/ListBudgets"),
    ("hq-nanny", "nanny-1.example", 7380, "nanny.v1.NannyService/ListServices"),
    ("hq-walle", "walle-1.example", 7480, "walle.v1.WalleService/ListProjects"),
)
GATEWAYS: Final = {"dns": 7682, "consul": 8500, "xds": 7681}
NODE: Final = "node-1"
_ABSOLUTE: Final = re.compile(r"(?<![\w.])/(?=(?:etc|run|var)/)")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl"),
]


class Host:
    """A machine: its folder of `keys/` is in its /etc, as the page's commands put it there. `root` stands for its /."""

    def __init__(self, name: str, keys: Path, ports: Ports) -> None:
        self.name, self._keys, self._ports = name, keys, ports
        self.root = keys.parent / name

    async def install(self, commands: str) -> None:
        """Run the page's commands here, without the groups, which this machine lacks."""
        self.root.joinpath("etc").mkdir(parents=True)
        local = re.sub(r" -g \S+", "", commands.replace("/etc", f"{self.root}/etc"))
        await run_page([local], self._keys, HOST=self.name)
        for file in self.root.rglob("*.*"):
            if file.suffix in (".env", ".yaml") and file.name != "policy.yaml":
                file.write_text(self._local(file.read_text()))

    async def start(self, machines: Machines, unit: str, instance: str = "") -> None:
        """Start a unit as systemd would."""
        text = (UNITS / f"{unit}{'@' if instance else ''}.service").read_text()
        text = self._local(text.replace("%i", instance).replace("%H", self.name))
        settings = unit_settings(text)
        for kind, folder in (("State", "var/lib"), ("Logs", "var/log"), ("Runtime", "run")):
            for name in settings.get(f"{kind}Directory", ()):
                (self.root / folder / name).mkdir(parents=True, exist_ok=True)
        env: dict[str, str] = {}
        for line in settings.get("Environment", ()):
            env.update(settings_file("\n".join(line.split())))
        for file in settings.get("EnvironmentFile", ()):
            env.update(settings_file(Path(file).read_text()))
        (words,) = settings["ExecStart"]
        await machines.start(f"{self.name}-{unit}{instance}", command_line(words, env), env)

    def _local(self, text: str) -> str:
        return self._ports.localized(_ABSOLUTE.sub(f"{self.root}/", text), self.name)


@pytest.fixture
async def keys() -> AsyncIterator[Path]:
    """The folder that the page's commands fill; its path is short enough for the agent's socket."""
    making = [block for block in (*blocks("Certificates"), *blocks("Hosts with systemd")) if "$HOST" not in block]
    with TemporaryDirectory(prefix="hq-") as folder:
        await run_page(making, clone(Path(folder)))
        yield Path(folder) / "keys"


@pytest.fixture
async def hosts(keys: Path, ports: Ports) -> dict[str, Host]:
    """By name, each with what the page's commands put into its /etc."""
    on_servers, on_nodes = (block for block in blocks("Hosts with systemd") if "$HOST" in block)
    made = {path.name: Host(path.name, keys, ports) for path in sorted(keys.iterdir()) if path.is_dir()}
    for host in made.values():
        await host.install(on_nodes if host.name == NODE else on_servers)
    return made


@pytest.fixture
def ports() -> Ports:
    return Ports()


def test_every_server_may_read_what_its_settings_name_and_no_other_server_may(hosts: dict[str, Host]) -> None:
    users = re.findall(r"^u (\S+)", (UNITS / "hq.sysusers").read_text(), re.MULTILINE)
    servers = {path.name: path for host in hosts.values() if host.name != NODE for path in host.root.glob("etc/*")}
    assert set(servers) == {user for user in users if user != "hq-instance"}, "instances read no server's files"
    for name, folder in servers.items():
        for unit in UNITS.glob(f"{name}*.service"):
            settings = unit_settings(unit.read_text())
            if unit.stem.rstrip("@") == name:
                assert (settings["User"], settings["Group"]) == ([name], [name])
        assert folder.stat().st_mode & 0o7777 == 0o2750
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o640}
        for file in folder.glob("*.env"):
            named = re.findall(rf"=({folder}|/etc)/(\S+)", file.read_text())
            assert all(parent == str(folder) for parent, _ in named), file
            assert {name for _, name in named} - {"stop"} <= {each.name for each in folder.iterdir()}, file


async def test_every_unit_starts_with_the_files_that_the_page_makes(
    keys: Path, hosts: dict[str, Host], ports: Ports, etcd35: EtcdBinary
) -> None:
    ca, token = keys / "server-ca.crt", (keys / "ada.token").read_text().strip()
    gateway, console = hosts["gateway-1.example"], hosts["console-1.example"]
    async with started(etcd35, keys / "logs") as machines:
        for location, number in product(("east", "west"), (1, 2, 3)):  # of five: a majority
            await hosts[f"hq-{number}.{location}.example"].start(machines, "hq-etcd")
        for unit, name, _, _ in SERVERS:
            await hosts[name].start(machines, unit)
        await console.start(machines, "hq-console")
        for kind in GATEWAYS:
            await gateway.start(machines, "hq-gateway", kind)
        await hosts[NODE].start(machines, "hq-host-agent")

        for unit, name, port, call in SERVERS:
            url = f"https://localhost:{ports.port(name, port)}"
            await machines.until_ready(f"{name}-{unit}", url, ca)
            answer = await asyncio.to_thread(ask, f"{url}/{call}", ca, token, {})
            assert answer[0] == 200, (answer, machines.said(f"{name}-{unit}"))
            assert (await asyncio.to_thread(ask, f"{url}/{call}", ca, "", {}))[0] == 401
        for kind, port in GATEWAYS.items():
            url = f"http://localhost:{ports.port(gateway.name, port)}"
            await machines.until_ready(f"{gateway.name}-hq-gateway{kind}", url, ca)
        url = f"https://localhost:{ports.port(console.name, 7580)}"
        await machines.until_ready(f"{console.name}-hq-console", url, ca)
        assert "ops/ada" in await sign_in(url, ca, token)
        cms = f"https://localhost:{ports.port('cms-1.example', 7280)}/metrics"
        for location in ("east", "west"):
            line = f'cms_location_certain{{location="{location}"}} 1'
            await eventually(partial(_says, cms, ca, token, line), what=f"the CMS to know {location}")
        await _find_what_runs_on_a_node(keys, hosts[NODE], ports, machines)
    for name in ("hq-1.east.example", "hq-1.west.example"):
        lines = (hosts[name].root / "var/log/hq/audit.log").read_text().splitlines()
        assert [line for line in lines if '"deny"' in line and "spiffe" in line] == []


async def _says(url: str, ca: Path, token: str, text: str) -> bool:
    return text in (await asyncio.to_thread(ask, url, ca, token))[1]


async def _find_what_runs_on_a_node(keys: Path, node: Host, ports: Ports, machines: Machines) -> None:
    """An instance that its unit runs is found by DNS and by Consul's API, through the agent of the node."""
    page = (ROOT / "examples" / "instancectl" / "hello.yaml").read_text()
    (keys / "hello.yaml").write_text(page.replace("node-a", NODE).replace("8090", str(quiet_port())))
    server = f"--server localhost:{ports.port('hq-1.east.example', 7071)}"
    await shell(f"hqctl {server} --ca server-ca.crt --token-file ada.token apply -f hello.yaml", keys)
    await node.start(machines, "instancectl", "hello-1")
    query = dns.message.make_query("hello.service.hq.internal", "A")
    port, consul = ports.port("gateway-1.example", 53), ports.port("gateway-1.example", 8500)

    def answers() -> list[str]:
        answer = dns.query.udp(query, "127.0.0.1", 10, port).answer
        return [str(each) for found in answer for each in found]

    await machines.until(f"{NODE}-instancectlhello-1", partial(asyncio.to_thread, answers), "to report it ready")
    url = f"http://localhost:{consul}/v1/health/service/hello?passing"
    assert '"hello-1"' in (await asyncio.to_thread(ask, url, keys / "server-ca.crt"))[1]
