"""The processes beside HQ and the federation gateway, as an operator would start them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tools.cloud.setting import SERVICES, node_name

NODES: Final = {"east": 15, "north": 15, "west": 10}
HOSTS_PER_RACK: Final = 5
BROKEN: Final = "broken"  # a directory: hosts that are named in it are silent
BAD_KERNEL: Final = "bad-kernel"  # a directory: hosts that are named in it do not boot
GRPC: Final = r"listening: gRPC ([^\s,]+)"
HTTP: Final = r"listening: gRPC \S+ HTTP (\S+)"
_FREE: Final = ("--grpc=127.0.0.1:0", "--http=127.0.0.1:0", "--grace=1s")


class Known(NamedTuple):
    """What the parts are told.

    Attributes:
        directory: for their files.
        etcd: where controllers keep their records, each below a prefix of its own.
        locations: replicas by location.
        gateway: gRPC address of the federation gateway.
        started: gRPC address, or the only one, of each part that runs already.
    """

    directory: Path
    etcd: str
    locations: Mapping[str, Sequence[str]]
    gateway: str
    started: Mapping[str, str]

    @property
    def location_flags(self) -> list[str]:
        return [f"--location={name}={','.join(replicas)}" for name, replicas in self.locations.items()]


class Part(NamedTuple):
    """One process.

    Attributes:
        says: matches a line of its log; the first group is its address.
    """

    name: str
    module: str
    arguments: Callable[[Known], Sequence[str]]
    says: str = GRPC


def sites() -> dict[str, dict[str, str]]:
    """Where hosts stand: eight racks of five, each rack at a switch of its own."""
    return {
        node_name(location, number + 1): {"dc": location, "rack": rack, "switch": f"s-{rack}"}
        for location, count in NODES.items()
        for number in range(count)
        for rack in [f"{location}-r{number // HOSTS_PER_RACK + 1}"]
    }


def write_sites(path: Path) -> Path:
    """Write the CMS's file of sites: one rack at a time in each location."""
    limits = {f"racks-{name}": {"kind": "rack", "most": 1, "within": {"dc": name}} for name in NODES}
    path.write_text(yaml.safe_dump({"hosts": sites(), "limits": limits}))
    return path


def write_executors(path: Path, server: str, cms: str) -> Path:
    """Write how Wall-E reboots a simulated host: its file in BROKEN is removed, and it is reported fine.

    With a bad kernel the file is made instead, and the reboot fails. `cms`: address of the CMS that Wall-E may ask.
    """
    boot = f"""[ ! -e "$1/{BAD_KERNEL}/$0" ] || {{ : >"$1/{BROKEN}/$0"; echo "kernel panic"; exit 1; }}
rm -f "$1/{BROKEN}/$0"; exec "$2" -m walle.main --server "$3" hosts report "$0" UNREACHABLE --fine"""
    argv = ["sh", "-c", boot, "{host}", str(path.parent), sys.executable, server]
    reboot = {"type": "command", "argv": argv, "timeout_s": 60, "repeatable": True}
    operations = dict.fromkeys(("reboot", "redeploy"), "simulated")
    listed = [{"url": f"http://{cms}"}]
    path.write_text(yaml.safe_dump({"executors": {"simulated": reboot}, "operations": operations, "cms": listed}))
    return path


def _walle(known: Known) -> list[str]:
    socket = f"unix:{known.directory / 'walle.sock'}"  # its own programs find it there
    config = write_executors(known.directory / "walle.yaml", socket, known.started["cms"])
    return _controller(known, *known.location_flags, "--settle=2s", f"--config={config}", f"--http={socket}")


def _controller(known: Known, *more: str) -> list[str]:
    return ["serve", f"--etcd={known.etcd}", *_FREE, *more]


def _gateway(kind: str, known: Known, *more: str) -> list[str]:
    services = [f"--service={service}" for service in SERVICES]
    return [kind, f"--hq={known.gateway}", *services, "--http=127.0.0.1:0", *more]


PARTS: Final = (
    Part(
        "cms",
        "cms.main",
        lambda known: _controller(
            known,
            *known.location_flags,
            f"--sites={write_sites(known.directory / 'sites.yaml')}",
            "--default-budget=10%",
            "--healer=wall-e",
            "--rollout-issuer=nanny",
        ),
    ),
    Part(
        "nanny",
        "nanny.main",
        lambda known: _controller(known, *known.location_flags, f"--cms={known.started['cms']}"),
    ),
    Part("walle", "walle.main", _walle),
    Part(
        "recorder",
        "recorder.main",
        lambda known: [
            *("serve", f"--dir={known.directory / 'record'}", *_FREE, *known.location_flags),
            *(f"--{name}={known.started[name]}" for name in ("cms", "nanny", "walle")),
        ],
    ),
    Part(
        "console",
        "console.main",
        lambda known: [
            *("serve", f"--hq={known.gateway}", *known.location_flags, "--http=127.0.0.1:0"),
            *(f"--{name}={known.started[name]}" for name in ("cms", "nanny", "walle", "recorder")),
        ],
        HTTP,
    ),
    Part("xds", "gateways.main", lambda known: _gateway("xds", known, "--grpc=127.0.0.1:0")),
    Part(
        "dns",
        "gateways.main",
        lambda known: _gateway("dns", known, "--dns=127.0.0.1:0"),
        r"answering DNS for \S+ on (\S+)",
    ),
    Part("consul", "gateways.main", lambda known: _gateway("consul", known, "--port=http"), HTTP),
)
