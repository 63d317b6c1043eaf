"""Every server and agent whose peer cannot be reached says so: which, where, why, and what to do."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.shipped import environment
from tests.unit.project.test_messages import INTERNALS

NOWHERE = "127.0.0.1:1"
LISTENING = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
LOCATION = ("--location", f"ams={NOWHERE}")

PROGRAMS = {
    "hq.main": ("serve", "--etcd", NOWHERE, *LISTENING),
    "cms.main": ("serve", "--etcd", NOWHERE, *LOCATION, *LISTENING),
    "nanny.main": ("serve", "--etcd", NOWHERE, *LOCATION, *LISTENING),
    "walle.main": ("serve", "--etcd", NOWHERE, *LOCATION, *LISTENING),
    "recorder.main": ("serve", "--dir", "kept", *LOCATION, *LISTENING),
    "federated.main": ("--config", "locations.yaml", *LISTENING),
    "gateways.main": ("consul", "--hq", NOWHERE, "--all-services", "--http", "127.0.0.1:0"),
    "instancectl.main": ("node", "--node", "n", "--server", NOWHERE, "--dir", "n", "--socket", "s"),
}
SUPERVISORS = {
    "run": ("run", "--instance", "i", "--server", NOWHERE, "--dir", "i"),
    "host-agent": ("host-agent", "--server", NOWHERE, "--socket", "s"),
}
SAYS = re.compile(
    rf"(WARNING|\bW\b).*\(?check [`-].*{re.escape(NOWHERE)}|(WARNING|\bW\b).*{re.escape(NOWHERE)}.*check [`-]"
)

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("module", "words"),
    [*PROGRAMS.items(), *(("instancectl.main", words) for words in SUPERVISORS.values())],
    ids=[*PROGRAMS, *SUPERVISORS],
)
async def test_a_peer_that_cannot_be_reached_is_named(tmp_path: Path, module: str, words: tuple[str, ...]) -> None:
    (tmp_path / "locations.yaml").write_text(f"locations: {{ams: {{replicas: ['{NOWHERE}']}}}}\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words),
        cwd=tmp_path, env=environment(), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    lines: list[str] = []
    try:
        async with asyncio.timeout(60):
            while not lines or not SAYS.search(lines[-1]):
                lines.append((await process.stderr.readline()).decode())  # type: ignore[union-attr]
                assert lines[-1], f"it ended: {lines}"
    except TimeoutError:
        pytest.fail(f"not said: {lines}")
    finally:
        with suppress(ProcessLookupError):  # it ended
            process.terminate()
        rest = await process.stderr.read()  # type: ignore[union-attr]
        await process.wait()
    said = "".join(lines) + rest.decode()
    assert not INTERNALS.search(said), said
