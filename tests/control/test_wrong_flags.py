"""A wrong flag ends every controller with the same exit code, wherever it is read."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

import cms.main
import nanny.main
import walle.main

PROGRAMS: dict[str, click.Command] = {"cms": cms.main.cli, "nanny": nanny.main.cli, "walle": walle.main.cli}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("flag", [("--location", "nowhere"), ("--term", "0s")], ids=" ".join)
def test_a_wrong_flag_is_a_usage_error(name: str, flag: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("control.process.set_up_logs", lambda *_: None)  # it would outlive the runner's stderr
    ended = CliRunner().invoke(PROGRAMS[name], ["dev", "--store", "memory", *flag])
    assert ended.exit_code == 2
    assert f"{flag[0]} {flag[1]}: " in ended.stderr
    assert "Traceback" not in ended.stderr
