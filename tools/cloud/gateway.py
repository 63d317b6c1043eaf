"""The gateway of the cloud: `hq-federated` over all locations, from a config file as an operator would write it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from tools.cloud.children import Child
from tools.cloud.locations import Location

_LISTENING = r"listening: gRPC (\S+), HTTP (\S+)"
_TIMEOUT = "1s"


class Gateway:
    """One gateway process on free ports.

    Attributes:
        grpc, http: where it serves, once it was started.
    """

    def __init__(self, directory: Path) -> None:
        self._config_path = directory / "gateway.yaml"
        arguments = [f"--config={self._config_path}", "--grpc=127.0.0.1:0", "--http=127.0.0.1:0", "--grace=1s"]
        self._child = Child("the gateway", "federated.main", arguments, directory / "gateway.log")
        self.grpc = self.http = ""

    @property
    def is_up(self) -> bool:
        return bool(self.grpc) and self._child.is_running

    async def start(self, locations: Iterable[Location]) -> None:
        """Return when it listens. Raises ChildFailed."""
        entries = {one.name: {"replicas": one.addresses, "timeout": _TIMEOUT} for one in locations}
        self._config_path.write_text(yaml.safe_dump({"locations": entries}))
        await self._child.start()
        found = await self._child.says(_LISTENING)
        self.grpc, self.http = found[1], found[2]

    async def stop(self) -> None:
        """Stop its processes in order."""
        await self._child.stop()
