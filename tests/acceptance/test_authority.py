"""docs/security-matrix.txt: every method of every server, called as every caller."""

from __future__ import annotations

import difflib

import pytest

from tests.support.authority.matrix import made, recorded


async def test_every_method_of_every_server_lets_in_whom_the_matrix_says() -> None:
    _compare(recorded(with_fronts=False), await made(with_fronts=False))


@pytest.mark.long
async def test_gateways_console_and_host_agent_let_in_whom_the_matrix_says() -> None:
    _compare(recorded(), await made())


def _compare(written: str, found: str) -> None:
    changed = difflib.unified_diff(written.splitlines(), found.splitlines(), "written", "found", n=0)
    assert "\n".join(changed) == "", "if this is meant: make matrix, and review what changed"
