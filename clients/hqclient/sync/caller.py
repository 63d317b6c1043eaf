"""What the generated calls have in common: they run the asyncio client's in the background loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from hqclient.sync.background import BACKGROUND

T = TypeVar("T")
P = ParamSpec("P")


class SyncCaller:
    """Base of the classes whose calls run those of the same names of an asyncio object."""

    def _asyncio(self) -> Any:
        """The object, of the current loop."""
        raise NotImplementedError

    def _run(
        self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], *args: P.args, **options: P.kwargs
    ) -> T:
        return BACKGROUND.run(method(self._asyncio(), *args, **options))

    def _iterate(
        self, method: Callable[Concatenate[Any, P], AsyncIterator[T]], *args: P.args, **options: P.kwargs
    ) -> Iterator[T]:
        items = method(self._asyncio(), *args, **options)
        try:
            while True:
                try:
                    item = BACKGROUND.run(_next_of(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if isinstance(items, AsyncGenerator):
                BACKGROUND.run(_close(items))


async def _next_of(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()
