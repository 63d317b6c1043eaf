"""Directories that a revision uses: paths that stay inside its own, and its volumes. Blocking."""

from __future__ import annotations

from pathlib import Path

from hqpb.v1.instance_pb2 import Volume
from instancectl.content import PrepareFailed
from instancectl.content.unpack import remove_tree
from instancectl.layout import Layout, directory_name
from instancectl.wanted.desired import Desired, RevisionKey


def inside(directory: Path, relative: str, what: str) -> Path:
    """`relative` below `directory`; its parents are made. Symlinks on the way (a package may bring some) count.

    Raises:
        PrepareFailed: it would lead out of the directory; `what` is named.
        OSError: the parents cannot be made.
    """
    path = directory / relative
    if not relative or Path(relative).is_absolute() or ".." in Path(relative).parts or path == directory:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is not a path inside the revision's directory")
    # Looked at before a directory is made: a link that leads out must not be followed even for that.
    try:
        stays = path.parent.resolve().is_relative_to(directory.resolve())
    except RuntimeError:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is a loop of symbolic links") from None
    if not stays:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} points outside the revision's directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def create(volume: Volume, key: RevisionKey, desired: Desired, layout: Layout) -> None:
    """Make a volume appear at its mount path. A persistent one that exists is kept with what is in it.

    Raises:
        PrepareFailed: its disk was not allocated, or its path is taken or leads elsewhere.
        OSError: it cannot be made.
    """
    what = f"volume {volume.name}"
    mount = inside(layout.revision(key), volume.mount_path or volume.name, what)
    if mount.is_symlink() or mount.exists():
        raise PrepareFailed("VolumePathTaken", f"{what}: {volume.mount_path} exists already: choose another mountPath")
    place = _place(volume, key, desired, layout)
    if place is None:
        mount.mkdir()
        return
    place.mkdir(parents=True, exist_ok=True)
    mount.symlink_to(place, target_is_directory=True)


def remove(revision_volumes: Path) -> None:
    """Remove what a revision had on a disk of its own."""
    remove_tree(revision_volumes)


def places_on_disks(key: RevisionKey, desired: Desired) -> list[Path]:
    """Where the passing volumes of a revision lie on allocated disks."""
    return [Path(disk.path) / _owner(desired) / directory_name(key) for disk in desired.allocation.disk if disk.path]


def persistent_places(desired: Desired) -> list[Path]:
    """Everything of the instance on allocated disks."""
    return [Path(disk.path) / _owner(desired) for disk in desired.allocation.disk if disk.path]


def _place(volume: Volume, key: RevisionKey, desired: Desired, layout: Layout) -> Path | None:
    """Where the volume really lies; None: in the revision's directory itself."""
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
