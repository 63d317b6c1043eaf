"""The environment of a container's process, and of its hooks and checks."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from instancectl.containers.workshop import Blueprint, Workshop
from instancectl.content import PrepareFailed, environment

log = logging.getLogger(__name__)


class ContainerEnvironment:
    """Variables of ours, of the container, and secrets."""

    def __init__(self, blueprint: Blueprint, workshop: Workshop) -> None:
        self._blueprint = blueprint
        self._shop = workshop
        self._of_process: dict[str, str] | None = None  # of an adopted process: unknown
        self._lacks_secrets = False

    async def for_process(self) -> dict[str, str]:
        """Environment of a new process. Raises SecretMissing."""
        secrets = await self._shop.secrets.environment(self._blueprint.revision.secret, self._blueprint.desired.service)
        self._of_process = self._with_secrets(secrets)
        return self._of_process

    async def for_scripts(self) -> dict[str, str]:
        """Environment of hooks and checks. For an adopted process it lacks secrets while they cannot be fetched."""
        if self._of_process is not None:
            return self._of_process
        try:
            return await self.for_process()
        except PrepareFailed as missing:
            if not self._lacks_secrets:
                name = self._blueprint.container.name
                log.warning("hooks and checks of container %s lack a secret: %s", name, missing)
            self._lacks_secrets = True
            return self._with_secrets({})

    def _with_secrets(self, secrets: Mapping[str, str]) -> dict[str, str]:
        desired, key = self._blueprint.desired, self._blueprint.key
        directory = self._shop.layout.revision(key)
        confinement = self._shop.guard.confinement(desired, self._blueprint.container, directory)
        basis = environment.base(desired, key.id, directory, is_confined=confinement.user is not None)
        return environment.for_container(basis, self._blueprint.container.environment, secrets)
