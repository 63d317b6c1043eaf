"""Volumes: creating them at their mount paths, and their places on allocated disks. Blocking."""

from __future__ import annotations

from pathlib import Path

from hqpb.v1.instance_pb2 import InstanceRevision, Volume
from instancectl.content import PrepareFailed
from instancectl.content.directories import inside
from instancectl.layout import Layout, directory_name
from instancectl.wanted.desired import Desired, RevisionContentKey


def create(volume: Volume, key: RevisionContentKey, desired: Desired, layout: Layout) -> None:
    """Create a volume at its mount path. An existing persistent one is kept with its contents.

    Raises:
        PrepareFailed: its disk was not allocated, or its path is taken or leads elsewhere.
        OSError: it cannot be made.
    """
    what = f"volume {volume.name}"
    mount = inside(layout.revision(key), volume.mount_path or volume.name, what)
    if mount.is_symlink() or mount.exists():
        raise PrepareFailed("VolumePathTaken", f"{what}: {volume.mount_path} already exists: choose another mountPath")
    place = _place(volume, key, desired, layout)
    if place is None:
        mount.mkdir()
        return
    place.mkdir(parents=True, exist_ok=True)
    mount.symlink_to(place, target_is_directory=True)


def places(revision: InstanceRevision, key: RevisionContentKey, desired: Desired, layout: Layout) -> list[Path]:
    """Where the volumes of a prepared revision are, as far as that is outside its directory. Raises PrepareFailed."""
    found = (_place(volume, key, desired, layout) for volume in revision.volume)
    return [place for place in found if place is not None]


def places_on_disks(key: RevisionContentKey, desired: Desired) -> list[Path]:
    """The places of a revision's ephemeral volumes on allocated disks."""
    return [Path(disk.path) / _owner(desired) / directory_name(key) for disk in desired.allocation.disk if disk.path]


def persistent_places(desired: Desired) -> list[Path]:
    """The instance's directories on allocated disks."""
    return [Path(disk.path) / _owner(desired) for disk in desired.allocation.disk if disk.path]


def _place(volume: Volume, key: RevisionContentKey, desired: Desired, layout: Layout) -> Path | None:
    """The volume's real place; None: inside the revision's directory."""
    if not volume.disk:
        return layout.volumes / volume.name if volume.persistent else None
    disk = next((disk for disk in desired.allocation.disk if disk.name == volume.disk), None)
    if disk is None or not disk.path:
        message = f"volume {volume.name}: the allocation gives no path for disk {volume.disk}"
        raise PrepareFailed("DiskNotAllocated", message)
    below = "volumes" if volume.persistent else directory_name(key)
    return Path(disk.path) / _owner(desired) / below / volume.name


def _owner(desired: Desired) -> str:
    return f"instance-{desired.instance_id}"
