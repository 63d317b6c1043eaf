"""Field by field: one value that is refused, named by its path, in an otherwise well-formed instance."""

import re
from typing import Any

import pytest
from google.protobuf import text_format

from hq.validation import check_new_instance
from hqpb.v1.instance_pb2 import Instance
from serving.errors import InvalidRequest

FULL = """
meta { id: "search-1" service_id: "search" }
spec {
  node_name: "node-1"
  resource_request { disk { name: "d1" } disk { name: "d2" } port { name: "p1" } port { name: "p2" } }
  allocation {
    disk { name: "d1" } disk { name: "d2" }
    port { name: "p1" number: 1 } port { name: "p2" number: 2 }
  }
  revision {
    id: "r0"
    container {
      name: "c0" command: "run" layer: "base" environment { key: "A" value: "b" }
      readiness_check { exec { command: "check" } }
      post_start { command: "warm" } pre_stop { command: "drain" }
    }
    container { name: "c1" readiness_check { http { port: "p1" } } }
    container { name: "c2" readiness_check { tcp { port: "p1" } } }
    file { name: "f0" url: "u" } file { name: "f1" url: "u" }
    package { name: "a" url: "u" } package { name: "a" url: "u" }
    volume { name: "v0" mount_path: "data" } volume { name: "v1" mount_path: "tmp" }
    secret { name: "s0" provider: "vault" id: "x" file { path: "key" } }
    secret { name: "s1" provider: "vault" id: "x" environment_variable: "KEY" }
    prepare { command: "unpack" }
  }
  revision { id: "r1" target: REVISION_TARGET_READY }
}
"""
R0, C0 = "spec.revision[0]", "spec.revision[0].container[0]"
LONG_S = 30 * 86_400 + 1
DIGEST = "sha256:" + "0" * 64
STEP = re.compile(r'\["(?P<key>.*?)"\]|\[(?P<index>\d+)\]|(?P<name>\w+)')

REFUSED = [
    ("meta.id", ""),
    ("meta.service_id", "a/b"),
    ('meta.labels["a b"]', ""),
    ('meta.labels["a"]', "b\n"),
    ('meta.labels["a"]', "ü" * 127),
    ('meta.annotations["a b"]', ""),
    ('meta.annotations["a"]', "x" * 16_385),
    ("meta.uid", 1),
    ("meta.cluster", "here"),
    ("meta.version", 1),
    ("meta.status_version", 1),
    ("spec.node_name", "a b"),
    ("spec.resource_request.cpu_millicores", 10**7 + 1),
    ("spec.resource_request.memory_bytes", 2**50 + 1),
    ("spec.resource_request.network_bytes_per_second", 2**50 + 1),
    ("spec.resource_request.disk[0].name", "a/b"),
    ("spec.resource_request.disk[1].name", "d1"),
    ("spec.resource_request.disk[0].size_bytes", 2**60 + 1),
    ("spec.resource_request.disk[0].storage_class", "a b"),
    ("spec.resource_request.port[0].name", ""),
    ("spec.resource_request.port[1].name", "p1"),
    ("spec.resource_request.port[0].number", 65_536),
    ("spec.allocation.cpu_millicores", 2**64 - 1),
    ("spec.allocation.memory_bytes", 2**64 - 1),
    ("spec.allocation.network_bytes_per_second", 2**64 - 1),
    ("spec.allocation.disk[0].name", "x" * 64),
    ("spec.allocation.disk[1].name", "d1"),
    ("spec.allocation.disk[0].size_bytes", 2**64 - 1),
    ("spec.allocation.disk[0].storage_class", "a b"),
    ("spec.allocation.disk[0].path", "x" * 4097),
    ("spec.allocation.port[0].name", "x" * 64),
    ("spec.allocation.port[1].name", "p1"),
    ("spec.allocation.port[0].number", 0),
    ("spec.allocation.port[0].number", 65_536),
    ("spec.allocation.port[1].number", 1),
    ("spec.allocation.host", "two words"),
    ("spec.revision[0].id", ".."),
    ("spec.revision[1].id", "r0"),
    ("spec.revision[0].target", 4),
    ("spec.revision[0].target", -1),
    (f"{R0}.secret_count", 3),
    (f"{C0}.name", "a/b"),
    (f"{R0}.container[1].name", "c0"),
    (f"{C0}.command[0]", "\0"),
    (f'{C0}.environment["A=B"]', ""),
    (f'{C0}.environment[""]', ""),
    (f'{C0}.environment["A"]', "\0"),
    (f"{C0}.restart_policy", 4),
    (f"{C0}.stop_grace_period.seconds", -1),
    (f"{C0}.stop_grace_period.seconds", LONG_S),
    (f"{C0}.stop_grace_period.nanos", -1),
    (f"{C0}.limit.cpu_millicores", 10**7 + 1),
    (f"{C0}.limit.memory_bytes", 2**50 + 1),
    (f"{C0}.limit.pids", 2**22 + 1),
    (f"{C0}.limit.open_files", 2**20 + 1),
    (f"{C0}.stop_signal", "SIGSTOP"),
    (f"{C0}.startup_check.grpc.port", ""),
    (f"{C0}.readiness_check.exec.command[0]", "\0"),
    (f"{R0}.container[1].readiness_check.http.port", ""),
    (f"{R0}.container[1].readiness_check.http.path", "health"),
    (f"{R0}.container[1].readiness_check.http.path", "/ HTTP/1.1\r\nhost: x\r\n\r\nPOST /"),
    (f"{R0}.container[2].readiness_check.tcp.port", "a b"),
    (f"{C0}.readiness_check.initial_delay.seconds", -1),
    (f"{C0}.readiness_check.period.seconds", LONG_S),
    (f"{C0}.readiness_check.timeout.nanos", 10**9),
    (f"{C0}.post_start.command[0]", "\0"),
    (f"{C0}.post_start.timeout.seconds", -1),
    (f"{C0}.pre_stop.timeout.seconds", LONG_S),
    (f"{C0}.pre_stop.name", "x" * 254),
    (f"{R0}.file[0].name", ""),
    (f"{R0}.file[0].name", "/etc/passwd"),
    (f"{R0}.file[0].name", "a/../../b"),
    (f"{R0}.file[1].name", "f0"),
    (f"{R0}.file[0].url", ""),
    (f"{R0}.file[0].checksum", DIGEST + "0"),
    (f"{R0}.file[0].mode", 0o10000),
    (f"{R0}.package[0].name", ".."),
    (f"{R0}.package[0].url", ""),
    (f"{R0}.package[0].checksum", "md5:00"),
    (f"{R0}.volume[0].name", ""),
    (f"{R0}.volume[1].name", "v0"),
    (f"{R0}.volume[0].mount_path", "/data"),
    (f"{R0}.volume[0].mount_path", "../data"),
    (f"{R0}.volume[0].disk", "a b"),
    (f"{R0}.secret[0].name", ""),
    (f"{R0}.secret[1].name", "s0"),
    (f"{R0}.secret[0].provider", ""),
    (f"{R0}.secret[0].id", "a\nb"),
    (f"{R0}.secret[0].key", "--address=http://192.0.2.1"),
    (f"{R0}.secret[0].key", "a\0b"),
    (f"{R0}.secret[0].version", "-x"),
    (f"{R0}.secret[0].version", "2/password"),
    (f"{R0}.secret[0].file.path", "/run/key"),
    (f"{R0}.secret[0].file.mode", 0o10000),
    (f"{R0}.secret[0].file.owner", "x" * 1025),
    (f"{R0}.secret[1].environment_variable", "A=B"),
    (f"{R0}.prepare[0].command[0]", "\0"),
    (f"{R0}.prepare[0].timeout.seconds", LONG_S),
    (f"{R0}.prepare[0].name", "x" * 254),
]

TAKEN = [
    ('meta.labels["a"]', "ü" * 126),
    ('meta.annotations["a"]', "two\nlines" + "x" * 16_000),
    ("spec.resource_request.cpu_millicores", 10**7),
    ("spec.resource_request.memory_bytes", 2**50),
    ("spec.resource_request.disk[0].size_bytes", 2**60),
    ("spec.allocation.port[0].number", 65_535),
    (f"{C0}.name", "x" * 63),
    (f"{C0}.stop_grace_period.seconds", LONG_S - 1),
    (f"{C0}.stop_signal", "SIGQUIT"),
    (f"{R0}.container[1].readiness_check.http.path", "/health?deep=%20"),
    (f"{R0}.file[0].name", "etc/..hidden/a..b"),
    (f"{R0}.file[0].checksum", DIGEST),
    (f"{R0}.file[0].mode", 0o7777),
    (f"{R0}.secret_count", 2),
]


@pytest.mark.parametrize(("path", "value"), REFUSED)
def test_an_invalid_value_is_refused_with_its_path(path: str, value: Any) -> None:
    instance = full_instance()
    put(instance, path, value)
    with pytest.raises(InvalidRequest) as refusal:
        check_new_instance(instance)
    named = re.sub(r"\.(seconds|nanos)$", "", path)  # a duration is at fault as a whole
    assert [violation.field for violation in refusal.value.violations] == [f"instance.{named}"]


@pytest.mark.parametrize(("path", "value"), TAKEN)
def test_a_value_at_the_limit_of_its_field_is_accepted(path: str, value: Any) -> None:
    instance = full_instance()
    put(instance, path, value)
    check_new_instance(instance)


def test_times_that_hq_sets_itself_are_refused_from_callers() -> None:
    instance = full_instance()
    instance.meta.creation_time.seconds = instance.meta.modification_time.seconds = 1
    with pytest.raises(InvalidRequest, match=r"meta\.creation_time: .*meta\.modification_time: "):
        check_new_instance(instance)


def test_a_new_instance_has_no_status_yet() -> None:
    instance = full_instance()
    instance.status.SetInParent()
    with pytest.raises(InvalidRequest, match=r"^instance\.status: is reported by agents"):
        check_new_instance(instance)


def test_a_secret_must_have_a_target() -> None:
    instance = full_instance()
    instance.spec.revision[0].secret[1].ClearField("environment_variable")
    with pytest.raises(InvalidRequest, match=r"^instance\.spec\.revision\[0\]\.secret\[1\]: has no target"):
        check_new_instance(instance)


def full_instance() -> Instance:
    return text_format.Parse(FULL, Instance())


def put(message: Any, path: str, value: Any) -> None:
    """Set the field at `path`; list indexes must exist, keys of maps need not."""
    *way, last = STEP.finditer(path)
    for step in way:
        message = getattr(message, step["name"]) if step["name"] else message[int(step["index"])]
    if last["name"]:
        setattr(message, last["name"], value)
    else:
        message[int(last["index"]) if last["index"] else last["key"]] = value
