"""Real processes of Wall-E that are killed, with a recorder beside them, and what `walle replay` says then."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests.rig.walle_run import WalleRun
from tests.support.gateway_process import ROOT, Program


class RecordedWalleRun(WalleRun):
    """A run of real processes under faults with a recorder beside them, and what `walle replay` says then."""

    async def _start(self, stack: AsyncExitStack) -> None:
        await super()._start(stack)
        of_walle = ",".join(process.grpc for process, _ in self._seats)
        flags = ("--location", "ams=127.0.0.1:9", "--walle", of_walle, "--dir", str(self.directory / "record"))
        where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        self._recorder = Program("recorder.main", ("serve", *where, *flags), self.directory / "recorder.log")
        await self._recorder.start()
        stack.push_async_callback(self._recorder.terminate)

    async def _judge(self) -> None:
        await super()._judge()
        others = self.directory / "others.yaml"
        others.write_text(yaml.safe_dump({project: {"UNREACHABLE": ["1d:1"]} for project in ("web", "db")}))
        self.said = await self._replay("--recorder", self._recorder.grpc)
        self.otherwise = await self._replay("--recorder", self._recorder.grpc, "--limits", str(others))

    async def _replay(self, *words: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "walle.main", "replay", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("", "proto", "clients"))},
            cwd=ROOT,
        )
        out, _ = await process.communicate()
        return process.returncode, out.decode()


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_while_processes_are_killed_what_fuses_decided_is_recorded_and_decided_again(tmp_path: Path) -> None:
    run = RecordedWalleRun(tmp_path, seed=2, say=lambda _: None)
    await run.run(20.0)
    assert run.broken == []
    code, out = run.said
    assert code == 0, out
    found = re.fullmatch(r"(\d+) uses of limits, (\d+) trips: all as recorded\n", out)
    assert found is not None, out
    assert int(found[1]) >= 2
    code, out = run.otherwise
    assert code == 0, out
    assert "would not have begun" in out
    assert re.search(r"^(web|db) +healing +UNREACHABLE 1d:1 +m\d+ .* no +yes$", out, re.MULTILINE), out
