"""Every container in deploy/kubernetes starts, with the secrets and config maps that deploy/README.md makes."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml

from store.embedded import EtcdBinary
from tests.support.shipped import ROOT, Machines, Ports, ask, blocks, clone, run_page, sign_in, started

MANIFESTS: Final = ROOT / "deploy" / "kubernetes"
LOCATION: Final = "east"
# Container, port of its pages, a call.
SERVERS: Final = (
    ("hq", 7080, "hq.v1.InstanceService/CountInstances"),
    ("hq-federated", 7180, "hq.v1.InstanceService/CountInstances"),
    ("hq-cms", 7280, "cms.v1.CmsService/ListBudgets"),
    ("hq-nanny", 7380, "nanny.v1.NannyService/ListServices"),
    ("hq-walle", 7480, "walle.v1.WalleService/ListProjects"),
)
OTHERS: Final = ("hq-etcd", "hq-dns", "hq-xds", "hq-console")
# As much of kubectl as the page uses: `create` puts each key of a secret or config map into a file.
KUBECTL: Final = f"""#!{sys.executable}
import pathlib, shutil, sys
context, create, kind, *rest = sys.argv[2:]
keys = {{"--cert": "tls.crt", "--key": "tls.key"}}
name, *flags = rest[kind == "secret":]
for flag, _, value in (each.partition("=") for each in flags):
    key, _, file = value.rpartition("=")
    to = pathlib.Path(__file__).with_name("cluster") / context / kind / name / (keys.get(flag) or key or file)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, to)
"""

Json = dict[str, Any]
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl"),
]


class Cluster:
    """What was made in a location's cluster, and pods started from manifests as processes."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self._folder, self._ports = folder, ports

    async def start(self, machines: Machines, name: str, host: str, pod: Json) -> None:
        """Start a pod's container, reached by `host`."""
        (container,) = pod["containers"]
        root = self._folder / "pods" / host
        for mount in container["volumeMounts"]:
            self._mount(pod, mount, root)
        env = {each["name"]: each.get("value", host.partition(".")[0]) for each in container["env"]}
        words = [*container.get("command", ["hq"]), *container.get("args", ())]
        expanded = [re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], word) for word in words]
        local = {each: self._local(value, root, host) for each, value in env.items()}
        await machines.start(name, [self._local(word, root, host) for word in expanded], local)

    def _mount(self, pod: Json, mount: Json, root: Path) -> None:
        place = root / mount["mountPath"].lstrip("/")
        place.mkdir(parents=True)
        volume: Json = next((each for each in pod.get("volumes", ()) if each["name"] == mount["name"]), {})
        made = volume.get("secret", {}).get("secretName"), volume.get("configMap", {}).get("name")
        for kind, name in zip(("secret", "configmap"), made, strict=True):
            if name is not None:
                source = self._folder / "cluster" / LOCATION / kind / name
                for file in (source if source.exists() else _generated(name)).iterdir():
                    place.joinpath(file.name).write_bytes(self._bytes(file, host=root.name))

    def _bytes(self, file: Path, host: str) -> bytes:
        if file.name not in ("federated.yaml", "sites.yaml"):
            return file.read_bytes()
        return self._ports.localized(file.read_text(), host, LOCATION).encode()

    def _local(self, text: str, root: Path, host: str) -> str:
        local = re.sub(r"(?<![\w.])/(?=(?:etc|var)/)", f"{root}/", text)
        return self._ports.localized(local, f"{host}.{LOCATION}", LOCATION)


def _generated(name: str) -> Path:
    """The folder whose kustomization makes this config map, with the files that it names."""
    for file in MANIFESTS.rglob("kustomization.yaml"):
        for made in yaml.safe_load(file.read_text()).get("configMapGenerator", ()):
            if made["name"] == name:
                return file.parent
    raise AssertionError(f"nothing makes the config map {name}")


def workloads() -> Iterator[tuple[str, int, Json]]:
    """Name, replicas to start, and pod template of each, as the overlay of the location has it."""
    for file in sorted(MANIFESTS.rglob("*.yaml")):
        for each in yaml.safe_load_all(file.read_text()):
            if each.get("kind") in ("Deployment", "StatefulSet"):
                pod = each["spec"]["template"]["spec"]
                if each["metadata"]["name"] == "hq":
                    _patch(pod)
                yield each["metadata"]["name"], 3 if each["kind"] == "StatefulSet" else 1, pod


def _patch(pod: Json) -> None:
    overlay = yaml.safe_load((MANIFESTS / "locations" / LOCATION / "kustomization.yaml").read_text())
    for step in yaml.safe_load(overlay["patches"][0]["patch"]):
        *path, last = step["path"].split("/")[4:]
        at: Any = pod
        for key in path:
            at = at[int(key)] if key.isdigit() else at[key]
        if step["op"] == "test":
            assert at[last] == step["value"]
        at[last] = step["value"]


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    with TemporaryDirectory(prefix="hq-") as made:
        kubectl = Path(made) / "kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)
        making = "\n".join(
            (*blocks("Certificates, keys and policies for Kubernetes"), *blocks("Containers and Kubernetes"))
        )
        await run_page([making.replace("kubectl", str(kubectl))], clone(Path(made)))
        yield Path(made)


async def test_every_manifest_starts_with_what_the_page_makes(folder: Path, etcd35: EtcdBinary) -> None:
    ports, ca, token = Ports(), folder / "keys/server-ca.crt", (folder / "keys/ada.token").read_text().strip()
    cluster = Cluster(folder, ports)
    async with started(etcd35, folder / "logs") as machines:
        names = set()
        for name, count, pod in workloads():
            names.add(name)
            for number in range(count):
                is_member = name == "hq-etcd"
                host = f"{name}-{number}.{name}" if is_member else name
                await cluster.start(machines, f"{name}-{number}" if is_member else name, host, pod)
        assert names == {*OTHERS, *(name for name, _, _ in SERVERS)}
        for name, port, call in SERVERS:
            url = f"https://localhost:{ports.port(f'{name}.{LOCATION}', port)}"
            await machines.until_ready(name, url, ca)
            assert (await asyncio.to_thread(ask, f"{url}/{call}", ca, token, {}))[0] == 200, machines.said(name)
            assert (await asyncio.to_thread(ask, f"{url}/{call}", ca, "", {}))[0] == 401
        await machines.until_ready("hq-dns", f"http://localhost:{ports.port(f'hq-dns.{LOCATION}', 7682)}", ca)
        await machines.until_ready("hq-xds", f"https://localhost:{ports.port(f'hq-xds.{LOCATION}', 7681)}", ca)
        console = f"https://localhost:{ports.port(f'hq-console.{LOCATION}', 7580)}"
        await machines.until_ready("hq-console", console, ca)
        assert "ops/ada" in await sign_in(console, ca, token)
