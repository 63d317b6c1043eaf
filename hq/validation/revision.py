"""One revision of a spec."""

from collections.abc import Sequence

from hq.validation.containers import note_container, note_hook
from hq.validation.faults import Faults
from hq.validation.files import check_checksum, check_mode, check_path, check_url, check_variable
from hq.validation.ids import check_bytes, check_id, check_line, check_name
from hqpb.v1.instance_pb2 import Container, File, InstanceRevision, Package, SecretDescriptor, Volume

MAX_SECRET_WORD_BYTES = 1024


def note_revision(faults: Faults, revision: InstanceRevision, path: str) -> None:
    faults.note(check_id(revision.id, f"{path}.id"))
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
    """Packages may share a directory: they are unpacked into it in order."""
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
