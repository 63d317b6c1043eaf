"""A lookup from a kept list passes through no more files and functions than it did."""

from __future__ import annotations

import pytest

from serving import compiled
from tests.support.lookup_path import trace_lookup

# Only to be lowered. `python -m tests.support.lookup_path` prints the path.
MOST_FILES = 22
MOST_FUNCTIONS = 55


@pytest.mark.skipif(compiled.form() == "compiled", reason="compiled functions cannot be traced")
async def test_the_path_of_a_lookup_gets_no_longer() -> None:
    steps = await trace_lookup()
    assert len({step.file for step in steps}) <= MOST_FILES
    assert len(steps) <= MOST_FUNCTIONS, [f"{step.file} {step.function}" for step in steps]
    assert {"hq/memory/joined_lists.py", "serving/h2/outgoing.py"} <= {step.file for step in steps}
