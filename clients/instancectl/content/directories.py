"""What lies in a revision's directories: unpacked archives (tar, zip), paths that stay inside, volumes. Blocking."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path

from hqpb.v1.instance_pb2 import Volume
from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.layout import Layout, directory_name
from instancectl.wanted.desired import Desired, RevisionKey

_MODE_SHIFT = 16
# zipfile hands on what its decoders raise, and says by RuntimeError what it cannot read (passwords, other methods);
# so does pathlib of a loop of links.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError)


def unpack(archive: Path, into: Path, what: str, cancel: Cancel) -> None:
    """Unpack into a directory, which is made. Nothing of an archive lands outside of it.

    Raises:
        PrepareFailed: it is no such archive, is damaged, or points outside the directory.
        OSError: the disk is full, or the like.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, into, cancel)
        else:
            _untar(archive, into, cancel)
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # it is the disk, not the archive (bz2 calls that an OSError, too)
        raise PrepareFailed("UnpackFailed", f"{what}: cannot be unpacked: {error}") from None


def _untar(archive: Path, into: Path, cancel: Cancel) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            cancel.check()
            if hasattr(tarfile, "data_filter"):
                # The filter refuses paths and links to outside and devices, and drops set-uid.
                tar.extract(member, into, filter="data")
            else:
                _check(member, into.resolve())
                tar.extract(member, into)


def _check(member: tarfile.TarInfo, root: Path) -> None:
    """What the filter does, for Python before 3.11.4. Raises TarError."""
    member.name = member.name.lstrip("/")
    target = (root / member.name).resolve()
    linked = target
    if member.issym():
        # From where the link will lie: what is there now may be a link to elsewhere, which it takes the place of.
        linked = ((root / member.name).parent.resolve() / member.linkname).resolve()
    elif member.islnk():
        linked = (root / member.linkname).resolve()
    if not (target.is_relative_to(root) and linked.is_relative_to(root)):
        raise tarfile.TarError(f"{member.name!r} points outside the directory")
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.TarError(f"{member.name!r} is not a file, directory or link")
    member.mode &= 0o755


def _unzip(archive: Path, into: Path, cancel: Cancel) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            cancel.check()
            target = Path(packed.extract(member, into))
            mode = member.external_attr >> _MODE_SHIFT & 0o777
            if mode and not member.is_dir():
                target.chmod(mode)


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it, or nothing. Raises OSError."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


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
        raise PrepareFailed("VolumePathTaken", f"{what}: {volume.mount_path} already exists: choose another mountPath")
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
