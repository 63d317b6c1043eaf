"""Tools and blueprints of containers, and how long a stop may take."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from typing import Protocol

from hqpb.v1.instance_pb2 import Container, InstanceRevision
from instancectl.clock import InstancectlClock
from instancectl.containers.restarts import RestartSettings
from instancectl.content.guard import Guard
from instancectl.content.secrets import SecretValues
from instancectl.layout import Layout
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.limits import Grip, Limiter, limit_of
from instancectl.processes.output import OutputSettings
from instancectl.state import StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey, container_digest, former_container_digest

DEFAULT_GRACE_S = 10.0
DEFAULT_DRAIN_S = 1.0


def grace_s(container: Container) -> float:
    """How long a stop may take before SIGKILL, including the stop script; an explicit 0 s is respected."""
    if not container.HasField("stop_grace_period"):
        return DEFAULT_GRACE_S
    return container.stop_grace_period.ToTimedelta().total_seconds()


def drain_s(container: Container) -> float:
    """How long a container runs on once it is known to be not ready; an explicit 0 s is respected."""
    if not container.HasField("drain_period"):
        return DEFAULT_DRAIN_S
    return container.drain_period.ToTimedelta().total_seconds()


def stop_signal(container: Container) -> signal.Signals:
    """Return the signal that asks a container to end."""
    return signal.Signals.__members__.get(container.stop_signal, signal.SIGTERM)


class Drain(Protocol):
    """Waits until clients that follow discovery have left what is about to stop."""

    async def __call__(self, period_s: float) -> None:
        """Return `period_s` after HQ received the latest status; at once if nothing is reported to it."""
        ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """Tools of containers, the same for all of an instance."""

    layout: Layout
    state: StateFile
    children: Children
    commands: Commands
    secrets: SecretValues
    limiter: Limiter
    guard: Guard
    restarts: RestartSettings
    output: OutputSettings
    clock: InstancectlClock
    rng: random.Random

    def grip(self, blueprint: Blueprint, script: str = "") -> Grip:
        """The limits of a container; a hook or check of it gets the same amounts once more. Raises OSError.

        So a stop hook outlives what it stops, and no check takes the memory of what it checks.

        Args:
            script: the kind of hook or check, of which one runs at a time. Empty: the container itself.
        """
        container = blueprint.container
        name = "/".join((blueprint.key.digest, container.name, *filter(None, (script,))))
        limit = limit_of(container, blueprint.desired.allocation)
        return self.limiter.grip(name, limit, is_script=bool(script))


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The specification that a container is started from."""

    key: RevisionContentKey
    revision: InstanceRevision
    container: Container
    desired: Desired

    @property
    def digest(self) -> str:
        """A digest of what the process depends on: if it differs, the container must be restarted."""
        return container_digest(self.container, self.desired.allocation)

    def is_origin_of(self, digest: str) -> bool:
        """Whether a container recorded with this digest was started from this blueprint, maybe by an older agent."""
        return digest in (self.digest, former_container_digest(self.container, self.desired.allocation))


def blueprints(key: RevisionContentKey, revision: InstanceRevision, desired: Desired) -> dict[str, Blueprint]:
    """Blueprints of a revision's containers, by name."""
    made = (Blueprint(key, revision, container, desired) for container in revision.container)
    return {blueprint.container.name: blueprint for blueprint in made}
