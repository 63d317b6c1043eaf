"""A channel that is made anew when the credentials behind it were renewed; calls on the old one may end in peace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from serving.transport.client import Channel

_DRAIN_S: Final = 30.0


class RenewedChannel:
    """The channel to one address.

    Args:
        opened: makes a channel, with the credentials of now.
        version: another number when a channel must be made anew.
    """

    def __init__(self, address: str, opened: Callable[[], Channel], version: Callable[[], int]) -> None:
        self._address, self._opened, self._version = address, opened, version
        self._made_with, self._channel = version(), opened()
        self._leaving: set[asyncio.Task[None]] = set()

    def current(self) -> Channel:
        """The channel for the next call."""
        if self._version() != self._made_with:
            old, self._channel = self._channel, self._opened()
            self._made_with = self._version()
            task = asyncio.create_task(old.close(_DRAIN_S), name=f"old channel to {self._address}")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        return self._channel

    async def close(self) -> None:
        """End every call."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(self._channel.close(), *self._leaving, return_exceptions=True)
