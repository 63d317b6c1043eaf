"""Live pages: a browser names the pages that it shows; their changes are sent as they happen.

A page is rendered again and compared. Watches of four servers would each need a copy of their state here, and rights
would have to be checked again for each of them; a page rendered with the person's own token needs neither.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Fragments = dict[str, str]
Rendering = Callable[[str, str], Awaitable[Fragments]]
"""The fragments of a page, by (token, path with query)."""

MAX_PAGES: Final = 20  # of one stream
MAX_STREAMS: Final = 500  # of all sessions
MAX_STREAMS_OF_SESSION: Final = 8  # a browser has one, which its tabs share
_RENDERS_AT_ONCE: Final = 2  # a request for a page waits for at most so many, however many are due
_MAX_REST_S: Final = 0.1
_AT_BEST_S: Final = 0.15
_EVERY_S: Final = 0.4
_LEAST_S: Final = 0.05
_QUICK_S: Final = 0.3  # pages this fast are on the screen within a second of a change, even if it comes during a render
_BUSY_SHARE: Final = 0.25  # of the time, at most, for each page that takes longer, and for all quick ones together
_PING_S: Final = 10.0
_MARK: Final = re.compile(r'data-mark="([0-9a-f]+)"')


class _Fragment(NamedTuple):
    mark: str
    html: bytes  # as JSON


@dataclass(slots=True)
class _RenderedPage:
    number: int  # of the render
    fragments: Mapping[str, _Fragment]
    good_until: float


@dataclass(slots=True)
class LivePages:
    """Renders each page once for all who look at it with the same token."""

    render: Rendering
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.monotonic
    _kept: dict[tuple[str, str], _RenderedPage] = field(default_factory=dict)
    _under_way: dict[tuple[str, str], asyncio.Task[_RenderedPage]] = field(default_factory=dict)
    _looked_at: Counter[tuple[str, str]] = field(default_factory=Counter)
    _streams: Counter[str] = field(default_factory=Counter)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _renders: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RENDERS_AT_ONCE))
    _rests_until: float = 0.0

    def refusal(self, session: str) -> tuple[int, str]:
        """Why one more stream of a session may not begin, with a status of HTTP; (0, ""): it may."""
        if self._streams[session] >= MAX_STREAMS_OF_SESSION:
            return 429, f"this session follows pages in {MAX_STREAMS_OF_SESSION} browsers already: close some of them"
        if self._streams.total() >= MAX_STREAMS:
            return (
                503,
                f"{MAX_STREAMS} browsers follow pages already: pages can be read, and do not update by themselves",
            )
        return 0, ""

    async def stream(self, token: str, pages: Sequence[str], session: str = "") -> AsyncGenerator[bytes, None]:
        """Server-sent events: at first all fragments of all pages, then those that changed.

        It counts from its first step on: a stream that is never iterated takes no place.
        """
        shown = Counter((token, page) for page in pages)
        self._looked_at += shown
        self._streams[session] += 1
        try:
            async for event in self._stream(token, pages):
                yield event
        finally:
            self._looked_at -= shown
            self._streams -= Counter({session: 1})

    async def _stream(self, token: str, pages: Sequence[str]) -> AsyncGenerator[bytes, None]:
        seen: dict[str, int] = {}
        sent: dict[tuple[str, str], str] = {}
        pinged = self.now()
        yield b"retry: 1000\n\n"
        while True:
            due = self.now() + _EVERY_S
            for page in pages:
                kept, changed = await self._current(token, page), {}
                due = min(due, kept.good_until)
                if seen.get(page) == kept.number:
                    continue
                seen[page] = kept.number
                for name, fragment in kept.fragments.items():
                    if sent.get((page, name)) != fragment.mark:
                        sent[page, name] = fragment.mark
                        changed[name] = fragment.html
                if changed:
                    yield _event(page, changed)
            if self.now() - pinged >= _PING_S:
                pinged = self.now()
                yield b"event: ping\ndata: {}\n\n"
            await self.sleep(max(_LEAST_S, due - self.now()))

    async def _current(self, token: str, page: str) -> _RenderedPage:
        key = token, page
        kept = self._kept.get(key)
        if kept is not None and self.now() < kept.good_until:
            return kept
        if key not in self._under_way:
            self._under_way[key] = asyncio.create_task(self._anew(key))
        return await asyncio.shield(self._under_way[key])

    async def _anew(self, key: tuple[str, str]) -> _RenderedPage:
        try:
            async with self._renders:
                if (rest_s := self._rests_until - self.now()) > 0:
                    await self.sleep(rest_s)
                began = self.now()
                fragments = await self.render(*key)
                now, took_s = self.now(), self.now() - began
                self._rests_until = now + min(took_s, _MAX_REST_S)
        finally:
            del self._under_way[key]
        pause_s = took_s / _BUSY_SHARE
        if took_s <= _QUICK_S:  # few pages are refreshed at once, many share the time
            pause_s = min(_EVERY_S, max(_AT_BEST_S, pause_s * len(self._looked_at)))
        self._kept = {k: v for k, v in self._kept.items() if v.good_until > now}
        coded = {name: _Fragment(_mark(html), json.dumps(html).encode()) for name, html in fragments.items()}
        self._kept[key] = _RenderedPage(next(self._numbers), coded, now + pause_s)
        return self._kept[key]


def _mark(html: str) -> str:
    found = _MARK.search(html)
    return found[1] if found else ""


def _event(page: str, changed: Mapping[str, bytes]) -> bytes:
    fragments = b", ".join(json.dumps(name).encode() + b": " + html for name, html in changed.items())
    return b'data: {"page": ' + json.dumps(page).encode() + b', "fragments": {' + fragments + b"}}\n\n"
