"""Says whether memory is in step with the store; waits until memory holds what a caller needs."""

from __future__ import annotations

import asyncio
from typing import Final

from hq.memory.cache import Cache
from serving.errors import NotLoaded
from store.fence import Fence
from store.port import Unavailable

_SHOWN_S: Final = 1.0


class Loading:
    """How far this replica has read the store.

    Attributes:
        loaded: set when everything was read and a fence proved it; cleared when the store was replaced.
        unloaded: set while `loaded` is not.
        restoring: a backup is being restored, so the store is incomplete.
    """

    def __init__(self) -> None:
        self.loaded, self.unloaded = asyncio.Event(), asyncio.Event()
        self.unloaded.set()
        self.restoring = False

    def finish(self) -> None:
        """Let reads be served."""
        self.loaded.set()
        self.unloaded.clear()

    def restart(self) -> None:
        """Refuse reads: everything must be read again."""
        self.loaded.clear()
        self.unloaded.set()
        self.restoring = False

    def check(self) -> None:
        """Raises NotLoaded until reads can be served."""
        if not self.loaded.is_set():
            hint = "" if self.restoring else ": retry, or use another replica"
            raise NotLoaded(self.why_not() + hint, 0.5)

    def why_not(self) -> str:
        """Why memory is not loaded yet, as a message for callers and operators."""
        if self.restoring:
            return "a restore is in progress or was interrupted: wait for it, or complete it with `hq restore`"
        return "this replica is still loading"


class CatchUp:
    """Waits until memory holds what a caller needs."""

    def __init__(self, cache: Cache, fence: Fence, loading: Loading) -> None:
        self._cache, self._fence, self._loading = cache, fence, loading

    async def proven(self) -> None:
        """Return when memory has everything that was acknowledged before this call.

        Raises StoreUnavailable, and NotLoaded: meanwhile the store was replaced and is not read yet, or a backup is
        being restored into it, so that memory is incomplete.
        """
        await self._fence.wait_for_fence()
        self._loading.check()

    async def until(self, version: int, timeout_s: float) -> None:
        """Return when memory is at a version, or when the time is over: the caller looks at what memory has then."""
        if self._cache.version >= version:
            return
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self._cache.wait_for(version)
        except (TimeoutError, NotLoaded):
            pass

    async def wait_for_version(self, version: int) -> None:
        """Return when the writer of this version can read it here; soon in any case, since it is stored."""
        await self.until(version, _SHOWN_S)


async def wait_for_watch(cache: Cache, version: int) -> None:
    """Return when everything up to a version has come through the watch. Raises Unavailable on a new epoch."""
    try:
        await cache.wait_for(version)
    except NotLoaded as error:
        raise Unavailable(str(error)) from error
