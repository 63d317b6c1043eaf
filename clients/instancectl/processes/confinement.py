"""Confines the processes of an instance: their user, and what keeps them apart from the node and its neighbours."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ProcessUser:
    """A user by its numbers."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Confinement:
    """How a process is started. Without arguments: as our own user, with our rights.

    Attributes:
        user: the one it runs as; None: our own.
        former_uid: of the user that its service had before, whose files become the new user's.
        is_hardened: it gains no privileges, has no capabilities and no group but its own; umask 077.
        limits: for the process itself, by number of the resource.
        wrapper: the command of a runtime, to put before the process's own.
        description: for `status` and reports.
    """

    user: ProcessUser | None = None
    former_uid: int | None = None
    is_hardened: bool = False
    limits: Mapping[int, int] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    description: str = ""

    def launcher_words(self, limits: Mapping[int, int]) -> list[str]:
        """Return the launcher's arguments; `limits` of the container win over ours."""
        words = [f"{kind}={amount}" for kind, amount in {**self.limits, **limits}.items()]
        if self.user is not None:
            words.append(f"user={self.user.uid}:{self.user.gid}")
        return words + (["hardened"] if self.is_hardened else [])


class ProcessRuntime(Protocol):
    """Isolation of processes beyond their users.

    Attributes:
        name: for `status`.
    """

    name: str

    def wrapper(self, cwd: Path, visible: tuple[Path, ...]) -> tuple[str, ...]:
        """Return the words to put before a command that runs in `cwd` and uses these directories."""
        ...


class PlainRuntime:
    """Separate processes by their users only: they see each other's command lines, and share /tmp."""

    name = "plain"

    def wrapper(self, cwd: Path, visible: tuple[Path, ...]) -> tuple[str, ...]:
        return ()


class BubblewrapRuntime:
    """A process sees itself only in /proc, has a /tmp of its own, and no directories of other instances.

    Args:
        root: above the directories of all instances.
    """

    name = "bubblewrap"

    def __init__(self, program: str, root: Path) -> None:
        self._program = program
        self._root = root

    def wrapper(self, cwd: Path, visible: tuple[Path, ...]) -> tuple[str, ...]:
        # Never --die-with-parent: it is to outlive us. Never --new-session: the process group stays the container's.
        hidden = ("--tmpfs", "/tmp", "--tmpfs", str(self._root))  # nosec B108: an empty one of its own
        binds = tuple(word for path in visible for word in ("--bind", str(path), str(path)))
        apart = ("--dev-bind", "/", "/", "--unshare-pid", "--unshare-ipc", "--proc", "/proc")
        return (self._program, *apart, *hidden, *binds, "--chdir", str(cwd), "--")


DEFAULT_PIDS = 4096  # of one user


def default_limits() -> dict[int, int]:
    """Limits of a hardened process: no core dumps, and a bound on processes that stops a fork bomb."""
    return {resource.RLIMIT_CORE: 0, resource.RLIMIT_NPROC: DEFAULT_PIDS}
