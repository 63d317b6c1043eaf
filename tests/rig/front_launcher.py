"""`hq-federated` that goes with whoever started it: `python -m tests.rig.front_launcher --config FILE ...`."""

from __future__ import annotations

from federated.main import cli
from tests.rig.launcher import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    cli(prog_name="hq-federated")
