"""`walle` shows who it is: a client certificate, by flags or by a context of the same file that hqctl reads."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from control.process import security_from
from serving.listeners import Addresses
from tests.support.certificates import Certificate
from tests.support.secured import TRUST_DOMAIN, Secured
from tests.support.walle.running import running

POLICY = f"roles:\n  admin:\n    - identities: [spiffe://{TRUST_DOMAIN}/ada]\n"
WALLE = str(Path(sys.executable).parent / "walle")


@dataclass
class Guarded:
    """A Wall-E that asks for client certificates, and Ada's."""

    address: str
    files: Secured
    ada: Certificate

    async def walle(self, *words: str, **environ: str) -> tuple[int, str]:
        """Exit code and all output."""
        known = {name: text for name, text in os.environ.items() if not name.startswith(("HQ_", "WALLE_"))}
        process = await asyncio.create_subprocess_exec(
            *(WALLE, *words),
            env=known | {"HQ_CONFIG": str(self.files.directory / "config.yaml")} | environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    files = Secured(tmp_path)
    files.policy.write_text(POLICY)
    ada = files.authority.issue("ada", [f"spiffe://{TRUST_DOMAIN}/ada"])
    security = security_from(files.with_certificates())
    mutual = Addresses("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
    async with running(security=security, addresses=mutual) as walle:
        yield Guarded((await walle.server.listening).grpc_mtls, files, ada)


@pytest.mark.long
async def test_a_certificate_by_flags_is_an_identity_and_without_one_nothing_is_shown(guarded: Guarded) -> None:
    where = ("--server", guarded.address, "--ca", str(guarded.files.authority.cert))
    code, output = await guarded.walle(*where, "projects", "list")
    assert code == 5, output
    who = ("--cert", str(guarded.ada.cert), "--key", str(guarded.ada.key))
    code, output = await guarded.walle(*where, *who, "projects", "add", "web")
    assert (code, output) == (0, "project web added\n")
    _, output = await guarded.walle(*where, *who, "projects", "get", "web")
    assert f"owners spiffe://{TRUST_DOMAIN}/ada" in output


@pytest.mark.long
async def test_a_context_names_servers_and_credentials_and_none_of_the_environments_are_sent_there(
    guarded: Guarded,
) -> None:
    config = guarded.files.directory / "config.yaml"
    config.write_text(
        f"contexts:\n  east:\n    servers: [127.0.0.1:1]\n    walle: ['{guarded.address}']\n"
        f"    ca: {guarded.files.authority.cert}\n    cert: {guarded.ada.cert}\n    key: {guarded.ada.key}\n"
        "  west:\n    servers: [127.0.0.1:1]\n"
    )
    code, output = await guarded.walle("--context", "east", "settings", "get", WALLE_TOKEN_FILE="/nowhere")
    assert code == 0, output
    code, output = await guarded.walle("--context", "west", "settings", "get")
    assert code == 2
    assert "context west names no servers of Wall-E" in output
    code, output = await guarded.walle("--server", "10.0.0.1:1", "settings", "get", WALLE_TOKEN_FILE=str(config))
    assert code == 7
    assert "plain text" in output or "token" in output
