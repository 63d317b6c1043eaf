"""`hq-federated` that goes with whoever started it: `python -m tests.rig.gateway_launcher --config FILE ...`."""

from __future__ import annotations

from tests.rig.launcher import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    from federated.main import cli

    cli(prog_name="hq-federated")
