"""The way to HQ: the host agent of the node; directly only if there is none, or while it has been away for long."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hqclient.client import Client, ClientSettings
from hqclient.clock import ClientClock, MonotonicClock
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials

DEFAULT_TIMEOUT_S: Final = 600.0
_SPREAD: Final = 0.2  # of the wait, at random: supervisors of one or many nodes lose host agents at the same moment
_LOOK_AGAIN_S: Final = 5.0  # at most, between two probes of a host agent that is away


class HqRoute:
    """Chooses again for each call.

    Attributes:
        watched: the client for watches: never falls back from the host agent to a replica.
    """

    def __init__(self, agent: Client | None, direct: Client | None, rng: random.Random, name: str = "") -> None:
        """At least one client is required. `name`: the host agent's, for people."""
        watched = agent or direct
        if watched is None:
            raise ValueError("no route to HQ: give a host agent or a replica")
        self.watched = watched
        self._agent, self._direct, self._name = agent, direct, name
        self._patience = 0.5 * rng.uniform(1.0, 1.0 + _SPREAD)
        self._timeout_s = DEFAULT_TIMEOUT_S

    @property
    def client(self) -> Client:
        """The client to use now."""
        if self._agent is None or (self._direct is not None and self._is_given_up(self._agent)):
            assert self._direct is not None
            return self._direct
        return self._agent

    def set_timeout(self, liveness_timeout_s: float) -> None:
        """Set after how much silence HQ marks a revision not ready."""
        if liveness_timeout_s > 0:
            self._timeout_s = liveness_timeout_s

    def describe(self) -> str:
        """The route's line in `status`."""
        if self._agent is None:
            return "HQ"
        if self._direct is not None and self._is_given_up(self._agent):
            return f"HQ directly: the host agent at {self._name} is away"
        return f"the host agent at {self._name} ({'away' if self._agent.away_s() else 'connected'})"

    async def close(self) -> None:
        """End every call."""
        for client in (self._agent, self._direct):
            if client is not None:
                await client.close()

    def _is_given_up(self, agent: Client) -> bool:
        return agent.away_s() >= self._patience * self._timeout_s


def route_of(
    agent: Path | None,
    servers: Sequence[str],
    files: CredentialFiles,
    rng: random.Random,
    clock: ClientClock | None = None,
) -> HqRoute:
    """The route by a host agent's socket, if there is one, and by replicas. Raises BadCredentials."""
    clock = clock or MonotonicClock()
    local = direct = None
    if agent is not None:
        settings = ClientSettings(max_probe_s=_LOOK_AGAIN_S)
        local = Client([f"unix:{agent.absolute()}"], settings=settings, clock=clock, rng=rng)
    if servers:
        direct = Client(servers, credentials=Credentials(files), clock=clock, rng=rng)
    return HqRoute(local, direct, rng, str(agent or ""))
