"""docs/security-matrix.txt, its part on all servers: every method of every server, called as every caller."""

from __future__ import annotations

import difflib

from tests.support.authority.matrix import made, recorded


async def test_every_method_of_every_server_lets_in_whom_the_matrix_says() -> None:
    changed = difflib.unified_diff(recorded().splitlines(), (await made()).splitlines(), "written", "found", n=0)
    assert "\n".join(changed) == "", "if this is meant: make matrix, and review what changed"
