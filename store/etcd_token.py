"""The authentication token of one user at one member of etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Metadata = tuple[tuple[str, str], ...]


class Token:
    """Fetched when first needed and again when it was refused, once for all who wait for it.

    etcd forgets tokens after five minutes without use, at its restart and when the user changes.
    """

    def __init__(self, fetch: Callable[[], Awaitable[str]] | None) -> None:
        """Without `fetch` there is no authentication."""
        self._fetch = fetch
        self._value = ""
        self._fetching = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """What goes with a call. Raises what `fetch` raises."""
        if self._fetch is None:
            return ()
        async with self._fetching:
            if not self._value:
                self._value = await self._fetch()
        return (("token", self._value),)

    def refused(self, metadata: Metadata) -> None:
        """A call with this metadata was refused; a newer token than that stays."""
        if metadata == (("token", self._value),):
            self._value = ""
