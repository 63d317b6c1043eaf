"""deploy/kubernetes: mistakes that an API server or a kubelet would find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
FOLDERS = ("base", "federated", "gateways", "cms", "nanny", "walle", "console")
TLS = {"tls.crt", "tls.key"}
# What the commands of deploy/README.md make; tests/acceptance/test_shipped_manifests.py runs them.
SECRETS = {f"{name}-tls": TLS for name in ("etcd", "hq", "hq-etcd", "hq-cms", "hq-cms-etcd", "hq-federated", "hq-xds")}
SECRETS.update({f"hq-{name}-tls": TLS for name in ("console", "cms-client", "federated-client", "gateway-client")})
SECRETS.update({f"hq-{name}{kind}-tls": TLS for name in ("nanny", "walle") for kind in ("", "-client", "-etcd")})
SECRETS["hq-console-session"] = {"session.key"}
CONFIG_MAPS = {
    f"hq-{name}": {"policy.yaml", "jwks.json"}
    for name in ("auth", *(f"{server}-auth" for server in ("cms", "federated", "nanny", "walle", "xds")))
}
CONFIG_MAPS["hq-ca"] = {"server-ca.crt", "client-ca.crt", "etcd-ca.crt"}
NAMED = {"console": 4}  # so many files its settings name; the others seven at least
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
Json = dict[str, Any]

pytestmark = pytest.mark.parametrize("folder", FOLDERS)


def objects(folder: str, *kinds: str) -> list[Json]:
    """Objects in the files that the folder's kustomization names."""
    wanted = kustomization(folder)["resources"]
    found = [each for name in wanted for each in yaml.safe_load_all((ROOT / folder / name).read_text())]
    return [each for each in found if not kinds or each["kind"] in kinds]


def kustomization(folder: str) -> Json:
    made: Json = yaml.safe_load((ROOT / folder / "kustomization.yaml").read_text())
    return made


def workloads(folder: str) -> list[Json]:
    return objects(folder, "Deployment", "StatefulSet")


def containers(folder: str) -> Iterator[tuple[Json, Json]]:
    """Each container with the pod it is in."""
    for workload in workloads(folder):
        pod = workload["spec"]["template"]["spec"]
        yield from ((pod, container) for container in pod["containers"])


def selected(folder: str, selector: Json) -> list[Json]:
    """Pod templates whose labels match the selector."""
    templates = [workload["spec"]["template"] for workload in workloads(folder)]
    return [each for each in templates if selector.items() <= each["metadata"]["labels"].items()]


def values(container: Json) -> list[str]:
    """The values of a container's variables and arguments."""
    own = [each["value"] for each in container.get("env", ()) if "value" in each]
    return [*own, *(word.partition("=")[2] or word for word in container.get("args", ()))]


def test_names_are_valid_and_there_is_one_of_each(folder: str) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in objects(folder)]
    assert len(names) == len(set(names))
    named = [each for _, container in containers(folder) for each in (container, *container["ports"])]
    assert all(DNS_LABEL.fullmatch(name) for name in [*(n for _, n in names), *(each["name"] for each in named)])
    assert all(len(port["name"]) <= 15 for _, container in containers(folder) for port in container["ports"])


def test_every_selector_selects_the_pods_of_one_workload(folder: str) -> None:
    for each in objects(folder, "Service", "PodDisruptionBudget"):
        selector = each["spec"]["selector"]
        assert len(selected(folder, selector.get("matchLabels", selector))) == 1, each["metadata"]["name"]
    for each in workloads(folder):
        own, labels = each["spec"]["selector"]["matchLabels"], each["spec"]["template"]["metadata"]["labels"]
        spread = re.findall(r"'matchLabels': (\{[^}]*\})", str(each["spec"]["template"]["spec"]))
        assert own.items() <= labels.items()
        assert all(yaml.safe_load(one).items() <= labels.items() for one in spread)


def test_services_and_probes_name_ports_that_containers_have(folder: str) -> None:
    for service in objects(folder, "Service"):
        (template,) = selected(folder, service["spec"]["selector"])
        ports = [port for container in template["spec"]["containers"] for port in container["ports"]]
        known = {port["name"] for port in ports} | {port["containerPort"] for port in ports}
        assert {port.get("targetPort", port["port"]) for port in service["spec"]["ports"]} <= known
    for _, container in containers(folder):
        probes = [each["httpGet"] for name, each in container.items() if name.endswith("Probe")]
        assert {probe["port"] for probe in probes} <= {port["name"] for port in container["ports"]}
        encrypts = any(name["name"].endswith("_TLS_CERT") for name in container["env"])
        assert all(probe.get("scheme", "HTTP") == ("HTTPS" if encrypts else "HTTP") for probe in probes)


def test_every_mount_has_its_volume_and_every_volume_its_mount(folder: str) -> None:
    for workload in workloads(folder):
        pod = workload["spec"]["template"]["spec"]
        claims = [each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", ())]
        volumes = [*(each["name"] for each in pod.get("volumes", ())), *claims]
        mounts = [mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]]
        assert sorted(volumes) == sorted(set(mounts))


def test_files_that_settings_name_are_in_the_volumes_mounted_there(folder: str) -> None:
    config_maps = CONFIG_MAPS | {
        each["name"]: {Path(f).name for f in each["files"]}
        for each in kustomization(folder).get("configMapGenerator", ())
    }
    for each in kustomization(folder).get("configMapGenerator", ()):
        assert all((ROOT / folder / name).exists() for name in each["files"])
    looked_at = 0
    for pod, container in containers(folder):
        volumes = {each["name"]: each for each in pod.get("volumes", ())}
        for mount in container["volumeMounts"]:
            volume = volumes.get(mount["name"], {})
            secret, config = volume.get("secret", {}).get("secretName"), volume.get("configMap", {}).get("name")
            held = SECRETS[secret] if secret else config_maps[config] if config else None
            below = [Path(value) for value in values(container) if Path(value).parent == Path(mount["mountPath"])]
            assert held is None or {path.name for path in below} <= held, mount
            looked_at += len(below)
    assert looked_at >= NAMED.get(folder, 7)


def test_a_pod_has_enough_time_to_shut_down(folder: str) -> None:
    for pod, container in containers(folder):
        own = {each["name"].split("_")[-1]: each.get("value", "") for each in container["env"]}
        pause_s = int(container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])[1])
        assert pause_s + int(own.get("GRACE", "0s").removesuffix("s")) < pod["terminationGracePeriodSeconds"]


def test_service_links_do_not_become_settings(folder: str) -> None:
    assert all(pod["enableServiceLinks"] is False for pod, _ in containers(folder))


def test_replicas_ask_every_member_of_etcd_and_members_know_each_other(folder: str) -> None:
    for workload in objects(folder, "StatefulSet"):
        name, count = workload["metadata"]["name"], workload["spec"]["replicas"]
        service = workload["spec"]["serviceName"]
        (headless,) = [each for each in objects(folder, "Service") if each["metadata"]["name"] == service]
        assert headless["spec"]["clusterIP"] == "None"
        hosts = [f"{name}-{number}.{service}" for number in range(count)]
        told = [value for _, container in containers(folder) for value in values(container)]
        assert ",".join(f"{host}:2379" for host in hosts) in told
        assert ",".join(f"{host.partition('.')[0]}=https://{host}:2380" for host in hosts) in told
