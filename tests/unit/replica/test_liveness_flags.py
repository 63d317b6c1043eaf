"""Flags under which every agent or none would be called silent are refused before anything is served."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from hq.main import cli


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--liveness-timeout 0s", "must be positive"),
        ("--liveness-timeout 10s --report-interval 10s", "use a third of it"),
        ("--report-interval 20m", "would expire"),
        ("--guard-share nan", "a number from 0 to 1"),
    ],
)
@pytest.mark.parametrize("command", ["dev --store memory", "serve --etcd 127.0.0.1:1"])
def test_inconsistent_liveness_settings_are_refused(command: str, flags: str, words: str) -> None:
    refused = CliRunner().invoke(cli, [*command.split(), *flags.split()])
    assert refused.exit_code == 2
    assert words in refused.output
