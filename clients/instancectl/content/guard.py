"""Who the processes of an instance run as, and how they are confined: asked before anything of it is started."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hqpb.v1.instance_pb2 import Container
from instancectl.processes.confinement import Confinement
from instancectl.wanted.desired import Desired


class Guard(Protocol):
    """Decides how processes are confined."""

    def confinement(self, desired: Desired, container: Container | None, cwd: Path) -> Confinement:
        """Of a container's process; None: of scripts and checks. Raises PrepareFailed: the node does not allow it."""
        ...


class NoGuard:
    """Processes are started as we are: for who is confined already, by a unit or a container of its own."""

    def confinement(self, desired: Desired, container: Container | None, cwd: Path) -> Confinement:
        return Confinement()
