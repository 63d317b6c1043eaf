"""What sections are made with and from."""

from __future__ import annotations

import random
from dataclasses import dataclass

from clients.instancectl.clock import Clock
from clients.instancectl.content.secret_values import SecretValues
from clients.instancectl.layout import Layout
from clients.instancectl.processes.children import Children
from clients.instancectl.processes.commands import Commands
from clients.instancectl.processes.limits import Limiter
from clients.instancectl.processes.output import OutputSettings
from clients.instancectl.sections.restart import RestartSettings
from clients.instancectl.state import StateFile
from clients.instancectl.wanted.desired import Desired
from clients.instancectl.wanted.fingerprint import RevisionKey, section_digest
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
