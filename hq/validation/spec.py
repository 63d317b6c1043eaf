"""Rules of an instance's spec: its resources, its revisions, and what each of these runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from hq.validation.faults import Faults, entry, printable_value
from hq.validation.typed_fields import note_enums
from hq.validation.values import (
    MAX_CONTAINERS,
    MAX_PATH_BYTES,
    check_bytes,
    check_checksum,
    check_duration,
    check_id,
    check_line,
    check_mode,
    check_name,
    check_path,
    check_target,
    check_url,
    check_variable,
    check_words,
)
from hqpb.v1.instance_pb2 import (
    REVISION_TARGET_READY,
    Container,
    DiskAllocation,
    DiskRequest,
    File,
    InstanceRevision,
    InstanceSpec,
    LifecycleHook,
    LivenessSettings,
    Package,
    PortAllocation,
    PortRequest,
    ReadinessCheck,
    ResourceAllocation,
    ResourceLimit,
    ResourceRequest,
    SecretDescriptor,
    Volume,
)

MAX_REVISIONS = 64
MAX_WEIGHT = 1_000
MIN_REPORT_INTERVAL_S, MIN_TIMEOUT_S, MAX_LIVENESS_S = 10, 60, 86_400


def note_spec(faults: Faults, spec: InstanceSpec, path: str) -> None:
    note_request(faults, spec.resource_request, f"{path}.resource_request")
    if spec.HasField("liveness"):
        note_liveness(faults, spec.liveness, f"{path}.liveness")
    note_allocation(faults, spec.allocation, f"{path}.allocation")
    if spec.node_name:
        faults.note(check_id(spec.node_name, f"{path}.node_name"))
    if spec.weight > MAX_WEIGHT:
        faults.add(f"{path}.weight", f"{spec.weight} is out of range: use 0 to {MAX_WEIGHT}, or leave it out for 100")
    note_revisions(faults, spec.revision, f"{path}.revision")
    note_enums(faults, spec, path)


def note_revisions(faults: Faults, revisions: Sequence[InstanceRevision], path: str) -> None:
    if len(revisions) > MAX_REVISIONS:
        faults.add(path, f"{len(revisions)} revisions are too many: keep at most {MAX_REVISIONS}")
    for index, revision in enumerate(revisions):
        note_revision(faults, revision, f"{path}[{index}]")
    faults.note_repeats((f"{path}[{index}].id", revision.id) for index, revision in enumerate(revisions))
    note_targets(faults, revisions, path)


def note_targets(faults: Faults, revisions: Sequence[InstanceRevision], path: str) -> None:
    ready = [index for index, revision in enumerate(revisions) if revision.target == REVISION_TARGET_READY]
    for index in ready[1:]:
        faults.add(
            f"{path}[{index}].target",
            f"{path}[{ready[0]}] is already READY: only one revision may be READY",
        )


MAX_CPU_MILLICORES = 10_000_000
MAX_MEMORY_BYTES = 1 << 50
MAX_DISK_BYTES = 1 << 60
MAX_NETWORK_BYTES_PER_SECOND = 1 << 50

is_host = re.compile(r"[!-~]{1,253}").fullmatch


def note_liveness(faults: Faults, liveness: LivenessSettings, path: str) -> None:
    """Check that a timeout outlasts a lost report or two."""
    for name, value in (("report_interval", liveness.report_interval), ("timeout", liveness.timeout)):
        if (violation := check_duration(value, f"{path}.{name}", MAX_LIVENESS_S)) is not None:
            faults.note(violation)
            return
    interval_ms, timeout_ms = liveness.report_interval.ToMilliseconds(), liveness.timeout.ToMilliseconds()
    if interval_ms < MIN_REPORT_INTERVAL_S * 1000:
        faults.add(f"{path}.report_interval", f"is too short: use {MIN_REPORT_INTERVAL_S}s at least")
    least_ms = max(MIN_TIMEOUT_S * 1000, 3 * interval_ms)
    if timeout_ms < least_ms:
        faults.add(f"{path}.timeout", f"is too short: use {least_ms / 1000:g}s at least, three report intervals")


def note_request(faults: Faults, request: ResourceRequest, path: str) -> None:
    note_amounts(faults, request, path)
    note_disks(faults, request.disk, f"{path}.disk")
    note_ports(faults, request.port, f"{path}.port", lowest=0)


def note_allocation(faults: Faults, allocation: ResourceAllocation, path: str) -> None:
    note_amounts(faults, allocation, path)
    note_disks(faults, allocation.disk, f"{path}.disk")
    note_ports(faults, allocation.port, f"{path}.port", lowest=1)
    for index, disk in enumerate(allocation.disk):
        faults.note(check_bytes(disk.path, f"{path}.disk[{index}].path", MAX_PATH_BYTES))
    if allocation.host:
        note_host(faults, allocation.host, f"{path}.host")


def note_host(faults: Faults, host: str, path: str) -> None:
    if not is_host(host):
        faults.add(path, f"{printable_value(host)} is malformed: use one name or address in ASCII, without a port")


def note_amounts(faults: Faults, amounts: ResourceRequest | ResourceAllocation, path: str) -> None:
    note_limit(faults, amounts, path)
    network = amounts.network_bytes_per_second
    note_amount(faults, network, MAX_NETWORK_BYTES_PER_SECOND, f"{path}.network_bytes_per_second")


def note_limit(faults: Faults, amounts: ResourceRequest | ResourceAllocation | ResourceLimit, path: str) -> None:
    note_amount(faults, amounts.cpu_millicores, MAX_CPU_MILLICORES, f"{path}.cpu_millicores")
    note_amount(faults, amounts.memory_bytes, MAX_MEMORY_BYTES, f"{path}.memory_bytes")


def note_amount(faults: Faults, value: int, limit: int, path: str) -> None:
    """Check an amount. The fields are unsigned, so a negative number arrives as a huge one."""
    if not 0 <= value <= limit:
        faults.add(path, f"{value} is out of range: use 0 to {limit} (mind the unit in the field's name)")


def note_disks(faults: Faults, disks: Sequence[DiskRequest | DiskAllocation], path: str) -> None:
    for index, disk in enumerate(disks):
        faults.note(check_name(disk.name, f"{path}[{index}].name"))
        note_amount(faults, disk.size_bytes, MAX_DISK_BYTES, f"{path}[{index}].size_bytes")
        if disk.storage_class:
            faults.note(check_id(disk.storage_class, f"{path}[{index}].storage_class"))
    faults.note_repeats((f"{path}[{index}].name", disk.name) for index, disk in enumerate(disks))


def note_ports(faults: Faults, ports: Sequence[PortRequest | PortAllocation], path: str, lowest: int) -> None:
    """The number 0, where it is the lowest, stands for any port and may repeat."""
    for index, port in enumerate(ports):
        faults.note(check_name(port.name, f"{path}[{index}].name"))
        if not lowest <= port.number <= 65_535:
            faults.add(f"{path}[{index}].number", f"{port.number} is not a valid port: use {lowest} to 65535")
    faults.note_repeats((f"{path}[{index}].name", port.name) for index, port in enumerate(ports))
    faults.note_repeats((f"{path}[{index}].number", port.number) for index, port in enumerate(ports))


MAX_SECRET_WORD_BYTES = 1024


def note_revision(faults: Faults, revision: InstanceRevision, path: str) -> None:
    faults.note(check_id(revision.id, f"{path}.id"))
    if (count := len(revision.container)) > MAX_CONTAINERS:
        faults.add(f"{path}.container", f"{count} are too many: a revision has at most {MAX_CONTAINERS}")
        return
    for index, container in enumerate(revision.container):
        note_container(faults, container, f"{path}.container[{index}]")
    for index, hook in enumerate(revision.prepare):
        note_hook(faults, hook, f"{path}.prepare[{index}]")
    for index, file in enumerate(revision.file):
        note_download(faults, file, f"{path}.file[{index}]")
        faults.note(check_mode(file.mode, f"{path}.file[{index}].mode"))
    for index, package in enumerate(revision.package):
        note_download(faults, package, f"{path}.package[{index}]")
    for index, volume in enumerate(revision.volume):
        note_volume(faults, volume, f"{path}.volume[{index}]")
    for index, secret in enumerate(revision.secret):
        note_secret(faults, secret, f"{path}.secret[{index}]")
    note_repeated_names(faults, revision, path)


def note_repeated_names(faults: Faults, revision: InstanceRevision, path: str) -> None:
    """Note repeated names, but not of packages, which may share a directory: they are unpacked into it in order."""
    lists: tuple[tuple[str, Sequence[Container | File | Volume | SecretDescriptor]], ...] = (
        ("container", revision.container),
        ("file", revision.file),
        ("volume", revision.volume),
        ("secret", revision.secret),
    )
    for field, items in lists:
        faults.note_repeats((f"{path}.{field}[{index}].name", item.name) for index, item in enumerate(items))


def note_download(faults: Faults, download: File | Package, path: str) -> None:
    faults.note(check_path(download.name, f"{path}.name"))
    faults.note(check_url(download.url, f"{path}.url"))
    faults.note(check_checksum(download.checksum, f"{path}.checksum"))


def note_volume(faults: Faults, volume: Volume, path: str) -> None:
    faults.note(check_name(volume.name, f"{path}.name"))
    faults.note(check_path(volume.mount_path, f"{path}.mount_path"))
    if volume.disk:
        faults.note(check_name(volume.disk, f"{path}.disk"))


def note_secret(faults: Faults, secret: SecretDescriptor, path: str) -> None:
    faults.note(check_name(secret.name, f"{path}.name"))
    faults.note(check_line(secret.provider, f"{path}.provider", MAX_SECRET_WORD_BYTES))
    faults.note(check_line(secret.id, f"{path}.id", MAX_SECRET_WORD_BYTES))
    faults.note(check_words(secret.key, f"{path}.key", MAX_SECRET_WORD_BYTES))
    faults.note(check_words(secret.version, f"{path}.version", MAX_SECRET_WORD_BYTES))
    for field in ("id", "key", "version"):
        if getattr(secret, field).startswith("-"):
            faults.add(f"{path}.{field}", "begins with a dash: it would be an option of the provider's command")
    if "/" in secret.version:
        faults.add(f"{path}.version", "has a slash: it would lead to another secret")
    note_secret_target(faults, secret, path)


def note_secret_target(faults: Faults, secret: SecretDescriptor, path: str) -> None:
    target = secret.WhichOneof("target")
    if target is None:
        faults.add(path, "has no target: set `file` or `environment_variable`")
    elif target == "environment_variable":
        faults.note(check_variable(secret.environment_variable, f"{path}.environment_variable"))
    else:
        faults.note(check_path(secret.file.path, f"{path}.file.path"))
        faults.note(check_mode(secret.file.mode, f"{path}.file.mode"))
        faults.note(check_bytes(secret.file.owner, f"{path}.file.owner", MAX_SECRET_WORD_BYTES))


MAX_HOOK_NAME_BYTES = MAX_GRPC_SERVICE_BYTES = 253
MAX_PIDS, MAX_OPEN_FILES = 1 << 22, 1 << 20  # what Linux can have
STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGKILL")
NUL_RULE = "NUL is not allowed in arguments or environments: remove it"


def note_container(faults: Faults, container: Container, path: str) -> None:
    faults.note(check_name(container.name, f"{path}.name"))
    note_command(faults, container.command, f"{path}.command")
    note_environment(faults, container.environment, f"{path}.environment")
    note_limit(faults, container.limit, f"{path}.limit")
    note_amount(faults, container.limit.pids, MAX_PIDS, f"{path}.limit.pids")
    note_amount(faults, container.limit.open_files, MAX_OPEN_FILES, f"{path}.limit.open_files")
    faults.note(check_duration(container.stop_grace_period, f"{path}.stop_grace_period"))
    if container.HasField("post_start"):
        note_hook(faults, container.post_start, f"{path}.post_start")
    if container.HasField("pre_stop"):
        note_hook(faults, container.pre_stop, f"{path}.pre_stop")
    for name in ("readiness_check", "liveness_check", "startup_check"):
        if container.HasField(name):
            note_container_check(faults, getattr(container, name), f"{path}.{name}")
    if container.stop_signal not in ("", *STOP_SIGNALS):
        faults.add(f"{path}.stop_signal", f"is not one of {', '.join(STOP_SIGNALS)}")


def note_container_check(faults: Faults, check: ReadinessCheck, path: str) -> None:
    faults.note(check_duration(check.initial_delay, f"{path}.initial_delay"))
    faults.note(check_duration(check.period, f"{path}.period"))
    faults.note(check_duration(check.timeout, f"{path}.timeout"))
    note_command(faults, check.exec.command, f"{path}.exec.command")
    if check.HasField("tcp"):
        faults.note(check_name(check.tcp.port, f"{path}.tcp.port"))
    if check.HasField("http"):
        faults.note(check_name(check.http.port, f"{path}.http.port"))
        faults.note(check_target(check.http.path, f"{path}.http.path"))
    if check.HasField("grpc"):
        faults.note(check_name(check.grpc.port, f"{path}.grpc.port"))
        faults.note(check_bytes(check.grpc.service, f"{path}.grpc.service", MAX_GRPC_SERVICE_BYTES))


def note_hook(faults: Faults, hook: LifecycleHook, path: str) -> None:
    note_command(faults, hook.command, f"{path}.command")
    faults.note(check_duration(hook.timeout, f"{path}.timeout"))
    faults.note(check_bytes(hook.name, f"{path}.name", MAX_HOOK_NAME_BYTES))


def note_command(faults: Faults, command: Iterable[str], path: str) -> None:
    for index, argument in enumerate(command):
        if "\0" in argument:
            faults.add(f"{path}[{index}]", NUL_RULE)


def note_environment(faults: Faults, environment: Mapping[str, str], path: str) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name:
            faults.note(check_variable(name, entry(path, name)))
        elif "\0" in value:
            faults.add(entry(path, name), NUL_RULE)
