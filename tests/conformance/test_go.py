"""The Go client does what the suite asks of every client."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.conformance.__main__ import play_one
from tests.conformance.client_process import ClientProcess
from tests.conformance.scenarios import read_scenarios
from tests.support.gateway_process import programs

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "clients" / "go"
_PROGRAM = """package main

import (
	"context"
	"fmt"
	"log"

	"example.com/hq/discovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	ctx := context.Background()
%s
%s
	fmt.Println(conn.Target(), err)
}
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("go") is None, reason="there is no go on PATH"),
]


async def test_the_go_client_passes_the_suite(tmp_path: Path) -> None:
    for command in (
        ["go", "vet", "./..."],
        ["go", "test", "-race", "./..."],
        ["go", "build", "-o", str(tmp_path / "client"), "./cmd/hqconformance"],
    ):
        run = await asyncio.create_subprocess_exec(*command, cwd=MODULE)
        assert await run.wait() == 0, command
    client = ClientProcess([str(tmp_path / "client")])
    problems = {scenario.name: await play_one(client, scenario) for scenario in read_scenarios()}
    await client.close()
    assert not {name: problem for name, problem in problems.items() if problem}


@pytest.mark.night
async def test_staticcheck_finds_nothing() -> None:
    order = ("go", "run", "honnef.co/go/tools/cmd/staticcheck@v0.6.1", "./...")
    run = await asyncio.create_subprocess_exec(*order, cwd=MODULE, stdout=asyncio.subprocess.PIPE)
    said, _ = await run.communicate()
    assert run.returncode == 0, said.decode()


async def test_the_page_runs_as_written(tmp_path: Path) -> None:
    """In a module of its own, which names this clone as the page says."""
    page = (ROOT / "docs" / "go.md").read_text()
    program = _PROGRAM % tuple(part.split("```")[0] for part in page.split("```go\n")[1:3])
    (tmp_path / "go.mod").write_text(
        (MODULE / "go.mod").read_text().replace("module example.com/hq\n", "module example.com/page\n")
        + f"\nrequire example.com/hq v0.0.0\n\nreplace example.com/hq => {MODULE}\n"
    )
    shutil.copy(MODULE / "go.sum", tmp_path)
    async with programs(tmp_path) as started:
        hq = await started.registry()
        await hq.put("shop-1", "shop", port=8091, labels={"zone": "east"})
        (tmp_path / "main.go").write_text(program.replace("127.0.0.1:7071", hq.grpc))
        run = await asyncio.create_subprocess_exec("go", "run", ".", cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
        said, _ = await run.communicate()
    assert said.decode() == "127.0.0.1:8091 r1 map[zone:east]\nhq:///shop/grpc <nil>\n"
