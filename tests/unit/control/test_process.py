"""What a controller's process needs to start."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from control import ControlConfig, Controller
from control.process import config_of, dev_flags, dev_store, kit_flags
from serving.clock import SystemClock
from serving.flags import Flags
from store.embedded import find_etcd
from tests.support.controllers import running

FLAGS = Flags("TEST_")


def given(*arguments: str) -> dict[str, Any]:
    """The values of the flags in `arguments`, as click parses them."""
    found: dict[str, Any] = {}

    @click.command()
    @kit_flags(FLAGS, "/test/v1/")
    @dev_flags(FLAGS, ".test")
    def command(**given: Any) -> None:
        found.update(given)

    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


def test_the_configuration_is_read_from_the_flags() -> None:
    asked = given("--process", "one", "--term", "4s", "--stop-file", "/run/stop")
    on_a_shared_etcd = {name: value for name, value in asked.items() if name not in ("store", "data")}
    assert config_of(on_a_shared_etcd, "test") == ControlConfig("/test/v1/", "one", 4.0, 0.0, Path("/run/stop"))


def test_a_store_of_its_own_is_compacted_by_the_process() -> None:
    assert config_of(given(), "test").compact_every_s > 0
    assert config_of(given("--compact-every", "7s"), "test").compact_every_s == 7


def test_each_start_has_a_name_of_its_own() -> None:
    assert config_of(given(), "test").process != config_of(given(), "test").process


def test_a_term_below_a_second_is_refused() -> None:
    with pytest.raises(click.UsageError, match=r"--term 0\.5s: must be at least 1s"):
        config_of(given("--term", "500ms"), "test")


@pytest.mark.parametrize("kind", ["memory", "etcd"])
async def test_a_controller_can_be_tried_out_on_a_store_of_its_own(kind: str, tmp_path: Path) -> None:
    async with dev_store(given("--store", kind, "--data", str(tmp_path))) as own:
        assert own.note == (find_etcd().note if kind == "etcd" else "")
        controller = Controller(config_of(given(), "test"), own.store, SystemClock(), random.Random(1))
        async with running(controller):
            await controller.loaded.wait()
        await own.store.close()
