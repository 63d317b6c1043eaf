"""All servers of one console."""

from __future__ import annotations

from dataclasses import dataclass

from console.backends.registry import Registry


@dataclass(frozen=True, slots=True)
class Servers:
    """Those that are there; None: the console was started without it."""

    registry: Registry

    def parts(self) -> frozenset[str]:
        """What there is to see, for the navigation."""
        return frozenset(("registry",))

    async def close(self) -> None:
        """End every connection."""
        await self.registry.close()
