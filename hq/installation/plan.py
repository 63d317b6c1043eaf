"""The plan of an installation: `installation.yaml` in the folder that `hq init` writes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import yaml

from hq.installation.files import write_atomically
from serving.yamltext import BadYaml, load

FILE: Final = "installation.yaml"
_HEAD: Final = "# What `hq init` was asked for. Change it by `hq init add-node`, or here and by `hq init DIR`.\n"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_ETCD_SIZES: Final = (1, 3, 5)
_TEXTS: Final = ("location", "trust_domain", "admin", "agents")
AGENTS: Final = "agent"
_AGENTS: Final = re.compile(r"([a-z0-9][a-z0-9.-]*/)?agent")
_ADMIN: Final = re.compile(r"[\w.@-]+(/[\w.@-]+)*")


class BadPlan(Exception):
    """An installation cannot be made like this; str() names the field and says what to write."""


@dataclass(frozen=True, slots=True)
class InstallationPlan:
    """One location. Machines are names with their IP addresses.

    Attributes:
        trust_domain: of the identities in certificates: spiffe://TRUST_DOMAIN/nanny.
        admin: who gets all rights, as the policies and tokens name them.
        hq: machines that run a replica, the other servers and the gateways.
        etcd: those that run a member of etcd; they may be the same.
        nodes: those that run instances.
        agents: what comes before the node in an agent's identity: spiffe://TRUST_DOMAIN/agent/node-1. With several
            locations it begins with the location: one CA signs for all, and nodes of two locations may share a name.
    """

    location: str
    hq: Mapping[str, str]
    etcd: Mapping[str, str]
    nodes: Mapping[str, str] = field(default_factory=dict)
    trust_domain: str = "hq.example"
    admin: str = "ops/admin"
    agents: str = AGENTS

    @property
    def machines(self) -> dict[str, str]:
        """Return all machines, each once."""
        return {**self.hq, **self.etcd, **self.nodes}

    def check(self) -> None:
        """Raises BadPlan."""
        for name in ("location", "trust_domain"):
            if not _NAME.fullmatch(getattr(self, name)):
                raise BadPlan(f"{name} {getattr(self, name)!r}: write lower case letters, digits, dots and dashes")
        if not _ADMIN.fullmatch(self.admin):
            raise BadPlan(f"admin {self.admin!r}: write a name as policies have it, such as ops/ada")
        if not _AGENTS.fullmatch(self.agents):
            raise BadPlan(f"agents {self.agents!r}: write agent, or LOCATION/agent, as the policies have it")
        if not self.hq:
            raise BadPlan("hq: there is no machine; name each as hq-1=10.0.0.1")
        if len(self.etcd) not in _ETCD_SIZES:
            raise BadPlan(f"etcd: has {len(self.etcd)} members; take 3 or 5 (1 only to try things out)")
        self._check_machines()

    def _check_machines(self) -> None:
        seen: dict[str, str] = {}
        for group in ("hq", "etcd", "nodes"):
            for name, address in getattr(self, group).items():
                _check_machine(group, name, address)
                if seen.setdefault(name, address) != address:
                    raise BadPlan(f"{group} {name}: has two addresses, {seen[name]} and {address}")
        if len(set(seen.values())) != len(seen):
            raise BadPlan("two machines have one address: give each its own, or one machine one name")

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        text = _HEAD + yaml.safe_dump(as_mapping(self), sort_keys=False)
        write_atomically(folder / FILE, text.encode())


def as_mapping(plan: InstallationPlan) -> dict[str, Any]:
    """The plan with the field names of the file."""
    values = {each.name: getattr(plan, each.name) for each in fields(plan)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def read_plan(folder: Path) -> InstallationPlan:
    """The plan of the folder. Raises BadPlan."""
    path = folder / FILE
    try:
        content = load(path.read_bytes())
    except OSError as error:
        raise BadPlan(f"{path}: {error.strerror}: name a folder that `hq init` wrote and this user can read") from None
    except BadYaml as error:
        raise BadPlan(f"{path}: {error}") from None
    known = {each.name for each in fields(InstallationPlan)}
    if not isinstance(content, dict) or not {"location", "hq", "etcd"} <= content.keys() <= known:
        raise BadPlan(f"{path}: write the fields {', '.join(sorted(known))}, and no others")
    for name, value in content.items():
        wanted = str if name in _TEXTS else dict
        if not isinstance(value, wanted):
            raise BadPlan(f"{path}: {name}: write {'a text' if wanted is str else 'NAME: ADDRESS, one a line'}")
    plan = InstallationPlan(**content)
    try:
        plan.check()
    except BadPlan as error:
        raise BadPlan(f"{path}: {error}") from None
    return plan


def parse_machines(texts: tuple[str, ...], field_name: str) -> dict[str, str]:
    """Parse several NAME=ADDRESS. Raises BadPlan."""
    machines: dict[str, str] = {}
    for text in texts:
        name, _, address = text.partition("=")
        _check_machine(field_name, name, address)
        if name in machines:
            raise BadPlan(f"{field_name} {name}: is there twice")
        machines[name] = address
    return machines


def _check_machine(group: str, name: Any, address: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadPlan(f"{group} {name!r}: is not the name of a machine; write NAME=ADDRESS, such as hq-1=10.0.0.1")
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        raise BadPlan(f"{group} {name}: {address!r} is not an IPv4 address; write {name}=10.0.0.1") from None
