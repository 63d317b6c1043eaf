"""The values that a plan gives to the templates of deploy/: `$name` in a file."""

from __future__ import annotations

from collections.abc import Iterable

from hq.installation.plan import InstallationPlan
from hq.installation.tokens import ISSUER

_REFRESH = "refresh_interval: 30s"


def settings_of(plan: InstallationPlan, machine: str = "") -> dict[str, str]:
    """Settings by name. `machine`: whose files they are for; empty: for none."""
    hq, etcd = plan.hq.values(), plan.etcd.values()
    values = {
        "location": plan.location,
        "trust_domain": plan.trust_domain,
        "admin": plan.admin,
        "issuer": ISSUER,
        "etcd": ",".join(_at(etcd, 2379)),
        "members": ",".join(f"{name}=https://{address}:2380" for name, address in plan.etcd.items()),
        "etcd_names": ", ".join(plan.etcd),
        "replicas": ",".join(_at(hq, 7071)),
        "replica_words": " ".join(_at(hq, 7071)),
        "replica_list": ", ".join(_at(hq, 7071)),
        "agent_ports": ",".join(_at(hq, 7072)),
        "hq_pages": _quote_addresses(_at(hq, 7080)),
        "controller_pages": _quote_addresses(each for port in (7280, 7380, 7480, 7880) for each in _at(hq, port)),
        "federated_pages": _quote_addresses(_at(hq, 7180)),
        "etcd_pages": _quote_addresses(_at(etcd, 2381)),
        "discovery": "\n".join(_discovery(_at(hq, 7080))),
    }
    for name, port in _CONTROLLERS:
        values |= {name: ",".join(_at(hq, port)), f"{name}_words": " ".join(_at(hq, port))}
    return values if not machine else {**values, "name": machine, "address": plan.machines[machine]}


_CONTROLLERS = (("cms", 7271), ("nanny", 7371), ("walle", 7471), ("recorder", 7871))


def _at(addresses: Iterable[str], port: int) -> list[str]:
    return [f"{address}:{port}" for address in addresses]


def _quote_addresses(addresses: Iterable[str]) -> str:
    return ", ".join(f'"{address}"' for address in addresses)


def _discovery(addresses: Iterable[str]) -> Iterable[str]:
    for address in addresses:
        yield f"      - url: https://{address}/sd/prometheus?port=metrics"
        yield f"        {_REFRESH}"
        yield "        tls_config: *tls"
