"""How hqctl reads files written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from hqcli.documents import BadDocument
from hqcli.instances import read_documents
from hqcli.shape import fill_message
from hqctl.manifests.ports import clashes, nodes_with_ports
from hqpb.v1 import instance_pb2 as pb

GOOD = """
meta: {id: web-1, serviceId: web, labels: {engine: yes}}
spec:
  nodeName: node-1
  revision:
    - id: "2"
      target: REVISION_TARGET_READY
      container:
        - {name: php, command: [php-fpm, -F], stopGracePeriod: 10s}
"""


def read(folder: Path, text: str, name: str = "web.yaml") -> list[pb.Instance]:
    file = folder / name
    file.write_text(text)
    return [document.instance for document in read_documents((str(file),))]


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(BadDocument) as caught:
        read(folder, text)
    return [line.replace(str(folder) + "/", "") for line in str(caught.value).splitlines()]


def test_a_document_is_the_json_form_of_an_instance(tmp_path: Path) -> None:
    (instance,) = read(tmp_path, GOOD)
    assert instance.spec.revision[0].container[0].stop_grace_period.seconds == 10


def test_yes_no_dates_and_times_are_read_as_text(tmp_path: Path) -> None:
    (instance,) = read(tmp_path, "meta: {id: a, labels: {engine: yes, built: 2026-01-31, from: 10:30, for: 1:30.5}}")
    assert dict(instance.meta.labels) == {"engine": "yes", "built": "2026-01-31", "from": "10:30", "for": "1:30.5"}


def test_fields_may_have_their_names_in_the_proto_file(tmp_path: Path) -> None:
    (instance,) = read(tmp_path, "{meta: {id: a, service_id: web}}")
    assert instance.meta.service_id == "web"


@pytest.mark.parametrize(
    "text",
    [
        "meta: {id: a}\n---\nmeta: {id: b}\n---\n",
        "[{meta: {id: a}}, {meta: {id: b}}]",
        '{"instances": [{"meta": {"id": "a"}}, {"meta": {"id": "b"}}]}',
    ],
    ids=["documents", "list", "answer of find"],
)
def test_one_file_may_hold_many(tmp_path: Path, text: str) -> None:
    assert [instance.meta.id for instance in read(tmp_path, text)] == ["a", "b"]


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"meta": {"id": "b"}}')
    (tmp_path / "a.yml").write_text("meta: {id: a}")
    (tmp_path / "README").write_text("not me")
    assert [d.instance.meta.id for d in read_documents((str(tmp_path),))] == ["a", "b"]


def test_what_get_shows_can_be_applied_again(tmp_path: Path) -> None:
    text = "{meta: {id: a, uid: '7', version: '12', cluster: dc1, creationTime: '2026-01-01T00:00:00Z'}, status: {}}"
    (instance,) = read(tmp_path, text)
    assert instance == pb.Instance(meta=pb.InstanceMeta(id="a", version=12))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("meta: {id: 42}", 'meta.id: must be text, not a number: put it in quotes, e.g. "42"'),
        ("meta: {id: a, labels: {x: true}}", "meta.labels.x: must be text, not true or false"),
        ("{meta: {id: a}, spec: {revisions: []}}", "spec.revisions: unknown field; did you mean revision?"),
        (
            "{meta: {id: a}, spec: {revision: [{id: v1, spec: {}}]}}",
            "spec.revision[0].spec: unknown field; there are id",
        ),
        (
            "{meta: {id: a}, spec: {revision: [{id: v1}, {id: v2, target: READY}]}}",
            "spec.revision[1].target: 'READY' is not a valid value; did you mean REVISION_TARGET_READY?",
        ),
        ("{meta: {id: a}, spec: {revision: {id: v1}}}", "spec.revision: must be a list"),
        (
            "{meta: {id: a}, spec: {allocation: {port: [{name: h, number: http}]}}}",
            "spec.allocation.port[0].number: must be a whole number, not 'http'",
        ),
        (
            "{meta: {id: a}, spec: {allocation: {port: [{name: h, number: 99999999999}]}}}",
            "spec.allocation.port.number: Value out of range",
        ),
        ("{meta: {id: a}, spec: {allocation: 3}}", "spec.allocation: must hold the fields cpuMillicores"),
        (
            "{meta: {id: a}, spec: {revision: [{id: v, prepare: [{timeout: 3}]}]}}",
            "spec.revision[0].prepare[0].timeout: must be a duration in quotes",
        ),
        ("spec: {}", "meta.id: is missing"),
        ("just text", "must be an instance"),
        ("meta: {id: a, id: b}", "duplicate key 'id'"),
        ("meta: {id: a", "column 1: did not find expected"),
        ("", "is empty"),
    ],
)
def test_a_fault_is_reported_with_its_field(tmp_path: Path, text: str, fault: str) -> None:
    (line,) = faults(tmp_path, text)
    assert line.startswith("web.yaml: ")
    assert fault in line


@pytest.mark.parametrize(("value", "what"), [("[a]", "a list"), ("{a: b}", "fields")])
def test_a_list_or_mapping_in_place_of_text_brings_no_advice_on_quotes(tmp_path: Path, value: str, what: str) -> None:
    with pytest.raises(BadDocument) as bad:
        read(tmp_path, f"meta: {{id: a, labels: {{x: {value}}}}}")
    assert str(bad.value).endswith(f"meta.labels.x: must be text, not {what}")


def test_all_faults_of_all_documents_are_reported_at_once(tmp_path: Path) -> None:
    lines = faults(tmp_path, "meta: {id: 1, serviceId: 2}\n---\nmeta: {id: fine}\n---\nspec: {}\n")
    assert [line.split(": ")[0] for line in lines] == ["web.yaml, document 1"] * 2 + ["web.yaml, document 3"]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match="No such file"):
        read_documents((str(tmp_path / "none.yaml"),))


def test_a_port_given_twice_on_a_node_is_found() -> None:
    def on(node: str, name: str, port: int, host: str = "") -> pb.Instance:
        allocation = pb.ResourceAllocation(host=host, port=[pb.PortAllocation(name="http", number=port)])
        return pb.Instance(meta=pb.InstanceMeta(id=name), spec=pb.InstanceSpec(node_name=node, allocation=allocation))

    instances = [
        on("n1", "a", 80),
        on("n1", "b", 80),
        on("n1", "c", 81),
        on("n2", "d", 80),
        on("n1", "e", 80, "10.0.0.1"),
    ]
    (clash,) = clashes(instances)
    assert (clash.node, clash.port, clash.ids) == ("n1", 80, ("a", "b"))
    assert nodes_with_ports(instances) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("path", "value", "message", "fault"),
    [
        ("[3]", {"spec": {"weight": 2**40}}, pb.Instance(), "[3].spec.weight: Value out of range"),
        ("", {"spec": {"weight": 2**40}}, pb.Instance(), "spec.weight: Value out of range"),
        ("pods.wait", "10x", Duration(), "pods.wait: Duration must end"),
        ("", "10x", Duration(), "Duration must end"),
    ],
)
def test_a_fault_found_by_protobuf_is_reported_with_its_place(
    path: str, value: Any, message: Message, fault: str
) -> None:
    [found] = fill_message(value, message, path)
    assert found.startswith(fault)
