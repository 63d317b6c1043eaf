"""Descriptions: what is accepted, and how faults are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from descriptions.description import Description, parse_description
from descriptions.installations import merge_installations, parse_option
from descriptions.reading import read_descriptions, read_installations
from descriptions.shares import shares_of
from hqcli.documents import BadDocument

WHOLE = """
service: web
engine: demo
allocator: by-hand
labels: {tier: front, old: null}
installations: {sas: [hq-1, "hq-2:7171"], man: "hq-3:1,hq-4:2"}
resources: {cpuMillicores: 500, ports: [http]}
allocation: {cpuMillicores: 500}
instances:
  - {id: web-1, installation: sas, node: n1, allocation: {host: h1, ports: {http: 8081}}}
  - {id: web-2, installation: man, node: n2}
  - {id: web-3, installation: man, allocation: null}
revisions:
  - {id: v1}
  - {id: v2, container: [{name: web, command: [run]}], secret: []}
ready: v2
installed: [v1]
drop: [v0]
"""


def parse(value: dict[str, Any]) -> tuple[Description, list[str]]:
    faults: list[str] = []
    return parse_description({"service": "web", **value}, "web.yaml", faults), faults


def faults_of(**value: Any) -> list[str]:
    return parse(value)[1]


@pytest.fixture
def whole(tmp_path: Path) -> Description:
    file = tmp_path / "web.yaml"
    file.write_text(WHOLE)
    return read_descriptions([str(file)])[0]


def test_engine_and_allocator_are_labels(whole: Description) -> None:
    assert whole.labels == {"engine": "demo", "allocator": "by-hand", "tier": "front", "old": None}


def test_an_instance_gets_the_amounts_of_its_service_and_its_own_ports(whole: Description) -> None:
    allocation = whole.placements[0].allocation
    assert allocation is not None
    assert (allocation.cpu_millicores, allocation.host) == (500, "h1")
    assert [(port.name, port.number) for port in allocation.port] == [("http", 8081)]


def test_an_instance_without_amounts_is_left_to_the_scheduler(whole: Description) -> None:
    assert whole.placements[1].allocation is not None
    assert (whole.placements[2].allocation, whole.placements[2].node) == (None, "")


def test_replicas_without_a_port_get_the_default_port(whole: Description) -> None:
    assert whole.installations == {"sas": ("hq-1:7071", "hq-2:7171"), "man": ("hq-3:1", "hq-4:2")}


def test_secrets_left_out_differ_from_an_empty_list(whole: Description) -> None:
    assert [definition.tells_secrets for definition in whole.definitions] == [False, True]


def test_a_fault_names_file_document_and_field(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("service: a\n---\nservice: b\ninstances:\n  - {id: b-1, allocation: {ports: {http: 0}}}\n")
    with pytest.raises(BadDocument) as bad:
        read_descriptions([str(file)])
    assert (
        str(bad.value)
        == f"{file}, document 2: instances[0].allocation.ports.http: 0 is not a valid port: use 1 to 65535"
    )


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    file.write_text('{"servce": "web", "instances": [{"id": "a b"}, {"node": 7}]}')
    with pytest.raises(BadDocument) as bad:
        read_descriptions([str(file)])
    told = [line.removeprefix(f"{file}: ") for line in str(bad.value).splitlines()]
    assert [line.split(":")[0] for line in told] == [
        "service",
        "instances[0].id",
        "instances[1].id",
        "instances[1].node",
        "servce",
    ]
    assert told[-1] == "servce: unknown field; did you mean service?"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"revisions": [{"id": "v1", "target": "x"}]}, "revisions[0].target: does not belong here"),
        ({"revisions": [{"id": "v1", "secret": [{"value": "x"}]}]}, "revisions[0].secret[0].value: unknown"),
        ({"revisions": [{"id": "v1", "secret": [{"name": "s", "provider": "p", "id": "i"}]}]}, "has no target"),
        ({"revisions": [{"id": "v1"}, {"id": "v1"}]}, "revisions[1].id: v1 is duplicated"),
        ({"ready": "v1", "drop": ["v1"]}, "drop[0]: v1 is also under ready"),
        ({"ready": "v1", "installed": ["v1"]}, "installed[0]: v1 is the READY one"),
        ({"drop": "others"}, "drop: `others` would leave no revision at all"),
        ({"drop": "all"}, "drop: must be a list of revisions, or `others`"),
        ({"engine": "a", "labels": {"engine": "b"}}, "engine: is 'a', and labels.engine is 'b'"),
        ({"instances": [{"id": "a"}, {"id": "a"}]}, "instances[1].id: a is duplicated"),
        ({"instances": [{"id": "a", "allocation": {"port": []}}]}, "write `ports: {http: 8080}`"),
        ({"resources": {"ports": {"a": 80, "b": 80}}}, "resources.ports.b: 80 is already port a"),
        ({"resources": {"cpu": 1}}, "resources.cpu: unknown field"),
        ({"liveness": 60}, "liveness: must hold the fields reportInterval, timeout, not a number"),
        ({"liveness": {"interval": "20s"}}, "liveness.interval: unknown field"),
        ({"liveness": {"timeout": 60}}, "liveness.timeout: must be a duration in quotes"),
        ({"weight": 1001}, "weight: is 1001: write a number from 0"),
        ({"weight": "5%"}, "weight: is '5%': write a number from 0"),
        ({"weight": True}, "weight: is True"),
        ({"weight": {"sas": 10}}, "weight.sas: no instance names this installation"),
        (
            {"weight": {"sas": -1}, "instances": [{"id": "a", "installation": "sas"}]},
            "weight.sas: is -1: write a number from 0",
        ),
        ({"instances": [{"id": "a", "weight": 1.5}]}, "instances[0].weight: is 1.5"),
        ({"labels": {"tier": 1}}, "labels.tier: must be text, not a number: put it in quotes"),
        ({"installations": {"sas": []}}, "installations.sas: has no server"),
        ({"instances": {}}, "instances: must be a list"),
    ],
)
def test_a_mistake_is_explained(value: dict[str, Any], fault: str) -> None:
    [told] = faults_of(**value)
    assert fault in told


@pytest.mark.parametrize(("value", "what"), [(["a"], "a list"), ({"a": "b"}, "fields")])
def test_a_list_or_mapping_in_place_of_text_brings_no_advice_on_quotes(value: object, what: str) -> None:
    assert sorted(faults_of(engine=value, labels={"tier": value})) == [
        f"engine: must be text, not {what}",
        f"labels.tier: must be text, not {what}",
    ]


def test_instances_go_to_the_installation_they_name(whole: Description) -> None:
    shares = shares_of([whole], whole.installations)
    assert {name: share.ids for name, [share] in shares.items()} == {"sas": ["web-1"], "man": ["web-2", "web-3"]}


def test_where_there_is_one_installation_nobody_has_to_name_it() -> None:
    description, _ = parse({"instances": [{"id": "a"}]})
    assert shares_of([description], ["default"])["default"][0].ids == ["a"]


def test_an_instance_of_an_unknown_or_unnamed_installation_is_a_fault() -> None:
    description, _ = parse({"instances": [{"id": "a"}, {"id": "b", "installation": "vla"}]})
    with pytest.raises(BadDocument) as bad:
        shares_of([description], ["sas", "man"])
    assert str(bad.value).splitlines() == [
        "web.yaml: instances[0].installation: is missing, and there are several: sas, man",
        "web.yaml: instances[1].installation: unknown installation vla; known: sas, man",
    ]


def test_two_documents_must_not_describe_one_instance() -> None:
    first, _ = parse({"instances": [{"id": "a"}]})
    second = parse_description({"service": "web", "instances": [{"id": "a"}]}, "more.yaml", [])
    with pytest.raises(BadDocument, match=r"more.yaml: instances\[0\].id: a is described at web.yaml: instances\[0\]"):
        shares_of([first, second], ["default"])


def test_a_configuration_names_installations(tmp_path: Path) -> None:
    file = tmp_path / "nanny.yaml"
    file.write_text("installations: {sas: [hq-1]}\n")
    assert read_installations(str(file)) == {"sas": ("hq-1:7071",)}
    file.write_text("instalations: {sas: [hq-1]}\n")
    with pytest.raises(BadDocument, match=r"instalations: unknown field; did you mean installations?"):
        read_installations(str(file))


def test_the_command_line_wins_over_a_file_and_a_default_fills_in() -> None:
    told = merge_installations({"sas": ("cli:1",)}, {"sas": ("file:1",), "man": ("file:2",)})
    assert told == {"sas": ("cli:1",), "man": ("file:2",)}
    assert merge_installations({}, {}, fallback="hq-1,hq-2:1") == {"default": ("hq-1:7071", "hq-2:1")}
    assert merge_installations() == {"default": ("127.0.0.1:7071",)}


@pytest.mark.parametrize("text", ["sas", "=hq-1", "sas=", "sas=http://hq-1", "sas=hq-1:0", "s s=hq-1", "sas=hq-1:x"])
def test_a_malformed_installation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_option(text)
