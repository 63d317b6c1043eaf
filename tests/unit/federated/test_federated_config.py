"""The configuration of a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from federated.locations.config import BadGatewayConfig, ConfigFile, LocationConfig, check_plain, parse
from federated.main import cli

GOOD = """
locations:
  west: {replicas: ["127.0.0.1:1", "[::1]:2"], timeout: 500ms}
  east: {replicas: ["hq.east:7071"]}
"""


def test_locations_are_read_in_order_of_names() -> None:
    found = list(parse(GOOD).locations.values())
    assert found == [
        LocationConfig("east", ("hq.east:7071",), 2.0),
        LocationConfig("west", ("127.0.0.1:1", "[::1]:2"), 0.5),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "expected a mapping"),
        ("locations: {}", "name at least one"),
        ("locations: {east: {}}", "locations.east.replicas: list the address"),
        ("locations: {east: {replicas: [nowhere]}}", "'nowhere' is not a valid HOST:PORT"),
        ("locations: {east: {replicas: ['a:70000']}}", "'a:70000' is not a valid HOST:PORT"),
        ("locations: {east: {replicas: [7071]}}", "7071 is not a valid HOST:PORT"),
        ("locations: {east: {replicas: ['a:1'], timeout: never}}", "is not a duration"),
        ("locations: {east: {replicas: ['a:1'], colour: red}}", "locations.east.colour: unknown setting"),
        ("locations: {'the east': {replicas: ['a:1']}}", "a name has 1 to 253 letters"),
        ("locations: {east: {replicas: ['a:1']}, west: {replicas: ['a:1']}}", "a:1 is listed for east already"),
        ("locations: {east: {replicas: ['a:1']}}\nreplicas: 3", "replicas: unknown setting"),
        ("locations: {east: {replicas: ['a:1']}, east: {replicas: ['b:1']}}", "duplicate key"),
        ("locations: [", "is not valid YAML"),
        ('locations: !!int ""', "is not valid YAML"),
        ("locations: !!bool maybe", "is not valid YAML"),
        ("[" * 1_000, "is not valid YAML"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(BadGatewayConfig, match=fault.replace("[", "\\[")):
        parse(text)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    file = ConfigFile(path)
    assert not file.reread()
    path.write_text(GOOD.replace("west", "south"))
    assert file.reread()
    assert list(file.current.locations) == ["east", "south"]


def test_a_broken_file_leaves_the_old_configuration_in_force_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    file = ConfigFile(path)
    path.write_text("locations: [")
    assert not file.reread()
    assert list(file.current.locations) == ["east", "west"]
    assert "not valid YAML" in file.fault
    path.write_text(GOOD)
    file.reread()
    assert file.fault == ""


def test_replicas_on_other_machines_are_never_asked_in_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    here, elsewhere = (
        "locations: {east: {replicas: ['" + address + ":7071']}}" for address in ("127.0.0.1", "10.0.0.1")
    )
    path.write_text(here)
    file = ConfigFile(path, check_plain)
    path.write_text(elsewhere)
    assert not file.reread()
    assert file.current.locations["east"].replicas == ("127.0.0.1:7071",)
    assert "10.0.0.1:7071" in file.fault
    refused = CliRunner().invoke(cli, ["--config", str(path)])
    assert refused.exit_code == 2
    assert "--location-ca" in refused.output


def test_a_missing_file_leaves_the_old_configuration_in_force(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    file = ConfigFile(path)
    path.unlink()
    assert not file.reread()
    assert file.fault
    path.write_text(GOOD)
    assert not file.reread()
    assert file.fault == ""
