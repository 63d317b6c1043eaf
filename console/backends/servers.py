"""All servers of one console."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from console.backends.asking import OWN_AUDIENCE
from console.backends.controllers import CmsClient, NannyClient, WalleClient
from console.backends.history import HistoryClient
from console.backends.registry import RegistryClient


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that the console asks. None: the console was started without this server.

    Attributes:
        audiences: a token that is for one of these opens this console.
    """

    registry: RegistryClient
    nanny: NannyClient | None = None
    cms: CmsClient | None = None
    walle: WalleClient | None = None
    recorder: HistoryClient | None = None
    audiences: frozenset[str] = frozenset({OWN_AUDIENCE})

    def parts(self) -> frozenset[str]:
        """Return the parts that there are, for the navigation."""
        return frozenset(name for name in ("nanny", "cms", "walle") if getattr(self, name) is not None)

    async def close(self) -> None:
        """End every connection."""
        await asyncio.gather(
            *(
                one.close()
                for one in (self.registry, self.nanny, self.cms, self.walle, self.recorder)
                if one is not None
            )
        )
