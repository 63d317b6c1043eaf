"""docs/python.md, run as written: the program prints what stands below it."""

from __future__ import annotations

import asyncio
import re
import sys

import pytest

from tests.clients.process import ROOT, environment
from tests.support.replicas import ReplicaProcess

PAGE = (ROOT / "docs" / "python.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(PRINTED,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_program_of_the_page_prints_what_the_page_shows(replica: ReplicaProcess) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM.replace("127.0.0.1:7071", replica.grpc)),
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert out.decode() == PRINTED
