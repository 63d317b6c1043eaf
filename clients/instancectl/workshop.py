"""What sections are made with and from."""

from __future__ import annotations

import random
from dataclasses import dataclass

from clients.instancectl.children import Children
from clients.instancectl.clock import Clock
from clients.instancectl.commands import Commands
from clients.instancectl.desired import Desired
from clients.instancectl.fingerprint import RevisionKey, section_digest
from clients.instancectl.layout import Layout
from clients.instancectl.limits import Limiter
from clients.instancectl.output import OutputSettings
from clients.instancectl.restart import RestartSettings
from clients.instancectl.secret_values import SecretValues
from clients.instancectl.state import StateFile
from hqpb.v1.instance_pb2 import Container, InstanceRevision


@dataclass(frozen=True, slots=True)
class Workshop:
    """What sections use, the same for all of an instance."""

    layout: Layout
    state: StateFile
    children: Children
    commands: Commands
    secrets: SecretValues
    limiter: Limiter
    restarts: RestartSettings
    output: OutputSettings
    clock: Clock
    rng: random.Random


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What a section is started from."""

    key: RevisionKey
    revision: InstanceRevision
    container: Container
    desired: Desired

    @property
    def digest(self) -> str:
        """Another one: it must be started anew."""
        return section_digest(self.container, self.desired.allocation)


def blueprints(key: RevisionKey, revision: InstanceRevision, desired: Desired) -> dict[str, Blueprint]:
    """For each section of a revision, by name."""
    made = (Blueprint(key, revision, container, desired) for container in revision.container)
    return {blueprint.container.name: blueprint for blueprint in made}
