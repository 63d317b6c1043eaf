"""The needs of each server on its machines, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_BOTH: Final = ("server", "client")
_SERVER: Final = ("server",)
_CLIENT: Final = ("client",)


@dataclass(frozen=True, slots=True)
class ServerNeeds:
    """The files in `/etc/NAME`, which only root and the user NAME may read.

    Attributes:
        machines: those of the plan that run it: hq, etcd or nodes.
        units: of systemd; an instance of a template is started by its name: `hq-gateway@dns`.
        settings: files of deploy/systemd that are made for each machine.
        certificates: by file, without `.crt`: the CA, the identity (empty: the machine's names), the usages.
        copies: by file, where in the folder of the installation it is.
        starts: what is started by default.
    """

    name: str
    machines: str
    units: tuple[str, ...]
    settings: tuple[str, ...]
    certificates: Mapping[str, tuple[str, str, tuple[str, ...]]]
    copies: Mapping[str, str] = field(default_factory=dict)
    starts: tuple[str, ...] = ()


_SERVER_CA, _CLIENT_CA, _ETCD_CA = (
    {f"{name}-ca.crt": f"secret/{name}-ca.crt"} for name in ("server", "client", "etcd")
)
_OWN_NAME: Final = {"tls": ("server", "", _SERVER)}


def _callers(policy: str) -> dict[str, str]:
    """Who may call, and what."""
    return {
        "jwks.json": "secret/jwks.json",
        "policy.yaml": f"config/policies/{policy}.yaml",
        "revoked.yaml": "config/revoked.yaml",
    }


def _controller(name: str, identity: str, **copies: str) -> ServerNeeds:
    """A server that keeps records in etcd, and calls HQ and others by its identity."""
    return ServerNeeds(
        f"hq-{name}",
        "hq",
        (f"hq-{name}.service",),
        (f"{name}.env",),
        {**_OWN_NAME, "client": ("client", identity, _CLIENT), "etcd": ("etcd", identity, _CLIENT)},
        {
            **(_SERVER_CA | _CLIENT_CA | _ETCD_CA),
            **_callers(f"hq-{name}"),
            **{f"{file}.yaml": f"config/{path}" for file, path in copies.items()},
        },
        (f"hq-{name}",),
    )


SERVERS: Final = (
    ServerNeeds(
        "hq-etcd", "etcd", ("hq-etcd.service",), ("etcd.yaml",), {"tls": ("etcd", "", _BOTH)}, _ETCD_CA, ("hq-etcd",)
    ),
    ServerNeeds(
        "hq", "hq", ("hq.service",), ("hq.env",),
        {**_OWN_NAME, "etcd": ("etcd", "hq", _CLIENT)},
        {**(_CLIENT_CA | _ETCD_CA), **_callers("hq")},
        ("hq",),
    ),
    _controller("cms", "cms", sites="sites.yaml"),
    _controller("nanny", "nanny"),
    _controller("walle", "wall-e", walle="walle.yaml"),
    ServerNeeds(
        "hq-federated", "hq", ("hq-federated.service",), ("federated.env",),
        {**_OWN_NAME, "client": ("client", "federated", _CLIENT)},
        {**_SERVER_CA, **_callers("hq-federated"), "federated.yaml": "config/federated.yaml"},
    ),
    ServerNeeds(
        "hq-recorder", "hq", ("hq-recorder.service",), ("recorder.env",),
        {**_OWN_NAME, "client": ("client", "recorder", _CLIENT)},
        {**(_SERVER_CA | _CLIENT_CA), **_callers("hq")},
        ("hq-recorder",),
    ),
    ServerNeeds(
        "hq-console", "hq", ("hq-console.service",), ("console.env",), _OWN_NAME,
        {**_SERVER_CA, "session.key": "secret/session.key"},
        ("hq-console",),
    ),
    ServerNeeds(
        "hq-gateway", "hq", ("hq-gateway@.service",),
        ("gateway-dns.env", "gateway-consul.env", "gateway-xds.env"),
        {"client": ("client", "gateway", _CLIENT)}, _SERVER_CA,
    ),
    ServerNeeds(
        "hq", "nodes",
        ("instancectl-node.service", "hq-host-agent.service", "instancectl@.service"), ("instancectl.env",),
        {"client": ("client", "{agents}/{machine}", _CLIENT)}, _SERVER_CA, ("instancectl-node",),
    ),
)  # fmt: skip
