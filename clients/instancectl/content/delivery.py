"""Putting a secret's value where it was asked for: a file that nobody else can read, there whole or not at all."""

from __future__ import annotations

import grp
import pwd
from pathlib import Path

from hqpb.v1.instance_pb2 import SecretDescriptor
from instancectl.atomic import write_atomically
from instancectl.content.failure import PrepareFailed
from instancectl.content.paths import inside

DEFAULT_MODE = 0o400
_OTHERS = 0o007


def deliver(secret: SecretDescriptor, value: bytes, directory: Path) -> None:
    """Write a value to its file below `directory`.

    Raises:
        PrepareFailed: the mode would show it to everybody, the owner is unknown, or the path leads elsewhere.
    """
    what = f"secret {secret.name}"
    mode = mode_of(secret)
    owner = _owner(secret.file.owner, what)
    path = inside(directory, secret.file.path, what)
    try:
        write_atomically(path, value, mode=mode, owner=owner)
    except OSError as error:
        message = f"{what}: cannot write {secret.file.path}: {error.strerror}"
        raise PrepareFailed("SecretNotDelivered", message) from None


def mode_of(secret: SecretDescriptor) -> int:
    """The permission bits asked for. Raises PrepareFailed: they would show the secret to everybody."""
    mode = secret.file.mode or DEFAULT_MODE
    if mode & _OTHERS:
        message = f"secret {secret.name}: mode 0{mode:o} lets everybody access it; allow owner or group only"
        raise PrepareFailed("SecretModeTooOpen", message)
    return mode


def _owner(text: str, what: str) -> tuple[int, int] | None:
    """uid and gid for `user` or `user:group`, by name or number; -1: unchanged."""
    if not text:
        return None
    user, _, group = text.partition(":")
    try:
        uid = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid if user else -1
        gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid if group else -1
    except KeyError:
        raise PrepareFailed("SecretOwnerUnknown", f"{what}: no user or group {text!r} on this host") from None
    return uid, gid
