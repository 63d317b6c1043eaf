"""The handles of several services that share one watch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from hqclient.discovery.service import Service


class Services(Mapping[str, Service]):
    """Handles by name of their services. A context manager; in the block they follow HQ by themselves."""

    def __init__(self, handles: Iterable[Service]) -> None:
        self._handles = {handle.name: handle for handle in handles}
        self._entered = AsyncExitStack()

    def __repr__(self) -> str:
        return f"Services({list(self._handles.values())})"

    def __getitem__(self, name: str) -> Service:
        return self._handles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as entering:
            for handle in self._handles.values():
                await entering.enter_async_context(handle)
            self._entered = entering.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.aclose()

    async def ready(self, timeout_s: float | None = 10.0, *, at_least: int = 1, live: bool = False) -> None:
        """Return when each of them is ready, as `Service.ready` has it.

        Raises:
            NotReady: one is not.
        """
        handles = self._handles.values()
        await asyncio.gather(*(handle.ready(timeout_s, at_least=at_least, live=live) for handle in handles))
