"""Faults to put into a well-formed instance: each changes one place and gives the path that must be named."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as pb
from tests.support.instance_strategies import new_instances

Fault = Callable[[st.DrawFn, pb.Instance], str]

MALFORMED_IDS = ("", "a b", "a/b", "ü", ".", "..", "a\n", "x" * 254)
MALFORMED_NAMES = (*MALFORMED_IDS, "x" * 64)
STRAY_PATHS = ("", "/etc/passwd", "..", "a/../../b", "a\0b")
ABSURD_SECONDS = (-1, 30 * 86_400 + 1, 1 << 62)


@st.composite
def faulty_instances(draw: st.DrawFn) -> tuple[pb.Instance, str]:
    """An instance to create with one fault, and its path in the instance."""
    instance = draw(new_instances())
    fault: Fault = draw(st.sampled_from(faults()))
    return instance, fault(draw, instance)


def faults() -> tuple[Fault, ...]:
    return (
        *(bad_id, bad_label_key, bad_label_value, status, bad_amount, bad_disk),
        *(bad_port_number, repeated_port_number, bad_revision_id, repeated_revision, second_ready),
        *(unknown_target, lost_secrets, bad_container_name, repeated_container, bad_variable, bad_duration),
        *(unknown_policy, bad_check_port, bad_file, bad_volume),
        *(bad_secret_word, bad_secret_path, secret_without_target),
    )


def bad_id(draw: st.DrawFn, instance: pb.Instance) -> str:
    instance.meta.id = draw(st.sampled_from(MALFORMED_IDS))
    return "meta.id"


def bad_label_key(draw: st.DrawFn, instance: pb.Instance) -> str:
    instance.meta.labels["not a key"] = draw(st.text(max_size=5))
    return 'meta.labels["not a key"]'


def bad_label_value(draw: st.DrawFn, instance: pb.Instance) -> str:
    instance.meta.labels["engine"] = draw(st.sampled_from(("two\nlines", "ü" * 127, "\x85")))
    return 'meta.labels["engine"]'


def status(draw: st.DrawFn, instance: pb.Instance) -> str:
    instance.status.ready.message = draw(st.text(max_size=5))
    return "status"


def bad_amount(draw: st.DrawFn, instance: pb.Instance) -> str:
    part = draw(st.sampled_from(("resource_request", "allocation")))
    name = draw(st.sampled_from(("cpu_millicores", "memory_bytes", "network_bytes_per_second")))
    setattr(getattr(instance.spec, part), name, draw(st.sampled_from(((1 << 50) + 1, (1 << 64) - 1))))
    return f"spec.{part}.{name}"


def bad_disk(draw: st.DrawFn, instance: pb.Instance) -> str:
    part = draw(st.sampled_from(("resource_request", "allocation")))
    disks = getattr(instance.spec, part).disk
    disks.add(name="seeded", size_bytes=(1 << 60) + 1)
    return f"spec.{part}.disk[{len(disks) - 1}].size_bytes"


def bad_port_number(draw: st.DrawFn, instance: pb.Instance) -> str:
    ports = instance.spec.allocation.port
    ports.add(name="seeded", number=draw(st.sampled_from((0, 65_536, (1 << 32) - 1))))
    return f"spec.allocation.port[{len(ports) - 1}].number"


def repeated_port_number(draw: st.DrawFn, instance: pb.Instance) -> str:
    ports = instance.spec.allocation.port
    if not ports:
        ports.add(name="seeded", number=4711)
    ports.add(name="seeded-twin", number=ports[draw(st.integers(0, len(ports) - 1))].number)
    return f"spec.allocation.port[{len(ports) - 1}].number"


def bad_revision_id(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    revision.id = draw(st.sampled_from(MALFORMED_IDS))
    return f"{path}.id"


def repeated_revision(draw: st.DrawFn, instance: pb.Instance) -> str:
    _, revision = _revision(draw, instance)
    instance.spec.revision.add(id=revision.id)
    return f"spec.revision[{len(instance.spec.revision) - 1}].id"


def second_ready(draw: st.DrawFn, instance: pb.Instance) -> str:
    _, revision = _revision(draw, instance)
    for other in instance.spec.revision:
        other.target = pb.REVISION_TARGET_INSTALLED
    revision.target = pb.REVISION_TARGET_READY
    instance.spec.revision.add(id="seeded-second", target=pb.REVISION_TARGET_READY)
    return f"spec.revision[{len(instance.spec.revision) - 1}].target"


def unknown_target(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    _set_number(revision, "target", draw(_unknown_numbers()))
    return f"{path}.target"


def lost_secrets(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    revision.secret_count = len(revision.secret) + draw(st.integers(1, 5))
    return f"{path}.secret_count"


def bad_container_name(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, container = _container(draw, instance)
    container.name = draw(st.sampled_from(MALFORMED_NAMES))
    return f"{path}.name"


def repeated_container(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    revision.container.add(name="twin")
    revision.container.add(name="twin")
    return f"{path}.container[{len(revision.container) - 1}].name"


def bad_variable(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, container = _container(draw, instance)
    name, value = draw(st.sampled_from((("A=B", ""), ("", "x"), ("A", "\0"))))
    container.environment[name] = value
    return f'{path}.environment["{name}"]'


def bad_duration(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, container = _container(draw, instance)
    container.stop_grace_period.seconds = draw(st.sampled_from(ABSURD_SECONDS))
    return f"{path}.stop_grace_period"


def unknown_policy(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, container = _container(draw, instance)
    _set_number(container, "restart_policy", draw(_unknown_numbers()))
    return f"{path}.restart_policy"


def bad_check_port(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, container = _container(draw, instance)
    container.readiness_check.http.port = draw(st.sampled_from(MALFORMED_NAMES))
    return f"{path}.readiness_check.http.port"


def bad_file(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    seeds = [("name", stray) for stray in STRAY_PATHS] + [("url", ""), ("checksum", "md5:00")]
    field, value = draw(st.sampled_from(seeds))
    setattr(revision.file.add(name="seeded", url="file:x"), field, value)
    return f"{path}.file[{len(revision.file) - 1}].{field}"


def bad_volume(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    revision.volume.add(name="seeded", mount_path=draw(st.sampled_from(STRAY_PATHS)))
    return f"{path}.volume[{len(revision.volume) - 1}].mount_path"


def bad_secret_word(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    field = draw(st.sampled_from(("provider", "id", "name")))
    secret = revision.secret.add(name="seeded", provider="vault", id="x", environment_variable="X")
    setattr(secret, field, "")
    return f"{path}.secret[{len(revision.secret) - 1}].{field}"


def bad_secret_path(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    secret = revision.secret.add(name="seeded", provider="vault", id="x")
    secret.file.path = draw(st.sampled_from(STRAY_PATHS))
    return f"{path}.secret[{len(revision.secret) - 1}].file.path"


def secret_without_target(draw: st.DrawFn, instance: pb.Instance) -> str:
    path, revision = _revision(draw, instance)
    revision.secret.add(name="seeded", provider="vault", id="x")
    return f"{path}.secret[{len(revision.secret) - 1}]"


def _revision(draw: st.DrawFn, instance: pb.Instance) -> tuple[str, pb.InstanceRevision]:
    if not instance.spec.revision:
        instance.spec.revision.add(id="seeded")
    index = draw(st.integers(0, len(instance.spec.revision) - 1))
    return f"spec.revision[{index}]", instance.spec.revision[index]


def _container(draw: st.DrawFn, instance: pb.Instance) -> tuple[str, pb.Container]:
    path, revision = _revision(draw, instance)
    if not revision.container:
        revision.container.add(name="seeded")
    index = draw(st.integers(0, len(revision.container) - 1))
    return f"{path}.container[{index}]", revision.container[index]


def _unknown_numbers() -> st.SearchStrategy[int]:
    return st.integers(-(1 << 31), -1) | st.integers(4, (1 << 31) - 1)


def _set_number(message: Any, field: str, number: int) -> None:
    """Open enums take any number; the types would not."""
    setattr(message, field, number)
