"""Who the processes of an instance run as, and how they are confined: asked before anything of it is started."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Container
from instancectl.content import PrepareFailed
from instancectl.processes.confinement import Confinement
from instancectl.wanted.desired import Desired


class Guard(Protocol):
    """Decides how processes are confined."""

    def confinement(self, desired: Desired, container: Container | None, cwd: Path) -> Confinement:
        """Confinement of a container's process; None: of scripts and checks. Raises PrepareFailed: the node does not
        allow it.
        """
        ...


class NoGuard:
    """Starts processes unconfined, as our own user: for a supervisor that a unit or a container confines already."""

    def confinement(self, desired: Desired, container: Container | None, cwd: Path) -> Confinement:
        if is_isolation_required(container):
            raise IsolationUnavailable(container, "instancectl run has none: let instancectl node supervise it")
        return Confinement()


class IsolationUnavailable(PrepareFailed):
    """A container demands isolation that is not to be had here."""

    def __init__(self, container: Container | None, why: str) -> None:
        name = container.name if container is not None else ""
        super().__init__("IsolationUnavailable", f"container {name} requires isolation, and {why}")


def is_isolation_required(container: Container | None) -> bool:
    """Whether the container may start only if it is kept apart."""
    return container is not None and container.isolation == instance_pb2.ISOLATION_REQUIRED
