"""A host agent makes its socket, and removes nothing but an old socket for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hqclient.credential_files import CredentialFiles
from instancectl.hostagent.agent import HostAgent
from tests.clients.instancectl.host_agents import short_directory
from tests.clients.instancectl.recording_hq import NODE


@pytest.fixture
def socket() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory / "agent.sock"


def make_file(path: Path) -> None:
    path.write_text("precious")


def make_link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("make", [make_file, make_link])
async def test_a_file_that_is_no_socket_is_not_removed_to_make_one(socket: Path, make: Callable[[Path], None]) -> None:
    make(socket)
    before = socket.lstat()
    with pytest.raises(OSError, match="not a socket"):
        await HostAgent(NODE, ["127.0.0.1:1"], CredentialFiles(), socket, []).run(asyncio.Event())
    assert socket.lstat() == before


async def test_a_lock_file_that_is_a_symbolic_link_is_not_followed(socket: Path) -> None:
    precious = socket.with_name("precious")
    precious.write_text("precious")
    socket.with_name(f"{socket.name}.lock").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        await HostAgent(NODE, ["127.0.0.1:1"], CredentialFiles(), socket, []).run(asyncio.Event())
    assert precious.read_text() == "precious"
