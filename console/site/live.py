"""Live pages: a browser names the pages that it shows; their changes are sent as they happen.

A page is rendered again and compared. Watches of four servers would each need a copy of their state here, and rights
would have to be checked again for each of them; a page rendered with the person's own token needs neither.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

Fragments = dict[str, str]
Rendering = Callable[[str, str], Awaitable[Fragments]]
"""The fragments of a page, by (token, path with query)."""

MAX_PAGES: Final = 20  # of one browser
_AT_BEST_S: Final = 0.15
_EVERY_S: Final = 0.4
_LEAST_S: Final = 0.05
_QUICK_S: Final = 0.3  # pages this fast are on the screen within a second of a change, even if it comes during a render
_BUSY_SHARE: Final = 0.25  # of the time, at most, goes into a page that takes longer, and into all that are quick
_PING_S: Final = 10.0
_MARK: Final = re.compile(r'data-mark="([0-9a-f]+)"')


@dataclass(slots=True)
class _Kept:
    fragments: Fragments
    good_until: float


@dataclass(slots=True)
class Live:
    """Renders each page once for all who look at it with the same token."""

    render: Rendering
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.monotonic
    _kept: dict[tuple[str, str], _Kept] = field(default_factory=dict)
    _under_way: dict[tuple[str, str], asyncio.Task[_Kept]] = field(default_factory=dict)
    _looked_at: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def stream(self, token: str, pages: Sequence[str]) -> AsyncGenerator[bytes, None]:
        """Server-sent events: at first all fragments of all pages, then those that changed."""
        shown = Counter((token, page) for page in pages)
        self._looked_at += shown
        try:
            async for event in self._stream(token, pages):
                yield event
        finally:
            self._looked_at -= shown

    async def _stream(self, token: str, pages: Sequence[str]) -> AsyncGenerator[bytes, None]:
        sent: dict[tuple[str, str], str] = {}
        pinged = self.now()
        yield b"retry: 1000\n\n"
        while True:
            due = self.now() + _EVERY_S
            for page in pages:
                kept, changed = await self._current(token, page), {}
                due = min(due, kept.good_until)
                for name, html in kept.fragments.items():
                    if sent.get((page, name)) != (mark := _mark(html)):
                        sent[page, name] = mark
                        changed[name] = html
                if changed:
                    yield _event(page, changed)
            if self.now() - pinged >= _PING_S:
                pinged = self.now()
                yield b"event: ping\ndata: {}\n\n"
            await self.sleep(max(_LEAST_S, due - self.now()))

    async def _current(self, token: str, page: str) -> _Kept:
        key = token, page
        kept = self._kept.get(key)
        if kept is not None and self.now() < kept.good_until:
            return kept
        if key not in self._under_way:
            self._under_way[key] = asyncio.create_task(self._anew(key))
        return await asyncio.shield(self._under_way[key])

    async def _anew(self, key: tuple[str, str]) -> _Kept:
        began = self.now()
        try:
            fragments = await self.render(*key)
        finally:
            del self._under_way[key]
        now, took_s = self.now(), self.now() - began
        pause_s = took_s / _BUSY_SHARE
        if took_s <= _QUICK_S:  # few pages are refreshed at once, many share the time
            pause_s = min(_EVERY_S, max(_AT_BEST_S, pause_s * len(self._looked_at)))
        self._kept = {k: v for k, v in self._kept.items() if v.good_until > now}
        self._kept[key] = _Kept(fragments, now + pause_s)
        return self._kept[key]


def _mark(html: str) -> str:
    found = _MARK.search(html)
    return found[1] if found else ""


def _event(page: str, changed: Fragments) -> bytes:
    return b"data: " + json.dumps({"page": page, "fragments": changed}).encode() + b"\n\n"
