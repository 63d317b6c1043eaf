"""Gateways as real processes, `hq-federated` as an operator would start it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.support.replicas import ReplicaProcess

_ROOT = Path(__file__).resolve().parents[2]
_LISTENING = re.compile(rb"listening: gRPC (\S+), HTTP (\S+)")


def write_config(path: Path, locations: Mapping[str, Sequence[str]], timeout: str = "2s") -> None:
    """A configuration with these replicas by location."""
    entries = {name: {"replicas": list(replicas), "timeout": timeout} for name, replicas in locations.items()}
    path.write_text(yaml.safe_dump({"locations": entries}))


class FederatedProcess(ReplicaProcess):
    """One `hq-federated` on free ports."""

    def __init__(
        self,
        config: Path,
        log: Path,
        flags: Sequence[str] = (),
        launch: Sequence[str] = ("-m", "federated.main"),
    ) -> None:
        super().__init__([], "", log, flags, launch)
        self._config = config

    async def start(self, *, until_ready: bool = True) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *self._launch, "--config", str(self._config)),
                *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *self._flags),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**env, "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients")))},
            )
        async with asyncio.timeout(30):
            while not (found := _LISTENING.search(self._log.read_bytes())):
                assert self._process.returncode is None, self.log_text()
                await asyncio.sleep(0.05)
            self.grpc, self.http = found[1].decode(), found[2].decode()
            while until_ready and (await self.get("/readyz"))[0] != 200:
                await asyncio.sleep(0.05)


__all__ = ["FederatedProcess", "write_config"]
