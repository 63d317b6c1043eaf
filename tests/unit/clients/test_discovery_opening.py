"""Handles that cannot be entered."""

from __future__ import annotations

from pathlib import Path

import pytest

from hqclient.client import BadCredentials, CredentialFiles, Credentials
from hqclient.discovery import Discovery


async def test_a_failed_entry_keeps_no_later_connection_open(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("word")
    credentials = Credentials(CredentialFiles(token_file=str(tmp_path / "token")))
    discovery = Discovery(["hq.example:7071"], credentials=credentials)
    with pytest.raises(BadCredentials):
        async with discovery.service("web", "http"):
            raise AssertionError
    discovery._servers = ["127.0.0.1:1"]
    async with discovery.service("web", "http"):
        assert discovery._client is not None
    assert discovery._client is None
