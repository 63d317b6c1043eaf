"""Live pages: each change is sent once, and rendered once for all streams of a token. The test moves the clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from console.site.live import MAX_STREAMS, MAX_STREAMS_OF_SESSION, Fragments, LivePages


class Pages:
    """Pages that a test changes, over a clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes_s = 0.0
        self.rendered: list[tuple[str, str]] = []
        self.marks = {"/": "1", "/b": "1"}

    async def render(self, token: str, page: str) -> Fragments:
        self.rendered.append((token, page))
        self.now += self.takes_s
        return {"x": f'<div data-live="x" data-mark="{self.marks[page]}">{page}</div>'}

    async def sleep(self, length_s: float) -> None:
        self.now += length_s

    def live(self) -> LivePages:
        return LivePages(self.render, self.sleep, lambda: self.now)


async def next_change(stream: AsyncGenerator[bytes, None]) -> dict[str, object]:
    async for event in stream:
        if event.startswith(b"data: "):
            found: dict[str, object] = json.loads(event.removeprefix(b"data: "))
            return found
    raise AssertionError


async def test_all_pages_are_sent_at_first_and_then_only_what_changed() -> None:
    pages = Pages()
    stream = pages.live().stream("", ["/", "/b"])
    assert [(await next_change(stream))["page"] for _ in range(2)] == ["/", "/b"]
    pages.marks["/b"] = "2"
    assert (await next_change(stream))["page"] == "/b"


async def test_nothing_is_sent_while_nothing_changes_but_a_ping() -> None:
    pages = Pages()
    stream = pages.live().stream("", ["/"])
    await next_change(stream)
    assert (await anext(stream)).startswith(b"event: ping")
    assert pages.now >= 10


async def test_streams_of_one_token_share_a_rendering_and_those_of_two_do_not() -> None:
    pages = Pages()
    live = pages.live()
    for token in ("a", "a", "b"):
        await next_change(live.stream(token, ["/"]))
    assert pages.rendered == [("a", "/"), ("b", "/")]


async def test_a_page_that_takes_long_is_rendered_less_often() -> None:
    pages = Pages()
    pages.takes_s = 1.0
    stream = pages.live().stream("", ["/"])
    await next_change(stream)
    await anext(stream)  # the ping, 10 s later
    assert len(pages.rendered) <= 1 + 10 / 5


async def test_a_single_page_is_rendered_more_often_than_each_of_many() -> None:
    pages = Pages()
    pages.takes_s = 0.03
    pages.marks |= {f"/{number}": "1" for number in range(10)}
    live = pages.live()
    alone = live.stream("", ["/"])
    await next_change(alone)
    await anext(alone)  # the ping, 10 s later
    assert len(pages.rendered) >= 10 / (0.15 + 0.03) - 2
    await alone.aclose()
    pages.rendered, began = [], pages.now
    many = live.stream("", list(pages.marks))
    while pages.now < began + 10:
        await anext(many)
    assert len(pages.rendered) <= len(pages.marks) * (10 / 0.4 + 2)


async def test_at_most_two_pages_are_rendered_at_a_time_so_that_other_requests_have_their_turn() -> None:
    under_way, most, may_end = 0, 0, asyncio.Event()

    async def render(token: str, page: str) -> Fragments:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await may_end.wait()
        under_way -= 1
        return {"x": f'<div data-live="x" data-mark="1">{page}</div>'}

    live = LivePages(render)
    streams = [live.stream("", [f"/{number}"]) for number in range(100)]
    firsts = [asyncio.ensure_future(next_change(one)) for one in streams]
    for _ in range(10):
        await asyncio.sleep(0)
    may_end.set()
    assert {str(one["page"]) for one in await asyncio.gather(*firsts)} == {f"/{number}" for number in range(100)}
    assert most == 2
    for one in streams:
        await one.aclose()


async def test_after_a_render_the_next_one_waits_as_long_as_it_took() -> None:
    pages = Pages()
    pages.takes_s = 0.05
    stream = pages.live().stream("", ["/", "/b"])
    for _ in range(2):
        await next_change(stream)
    assert pages.now >= 3 * 0.05


async def test_a_session_follows_pages_in_eight_streams_and_the_next_one_is_refused() -> None:
    live = Pages().live()
    streams = [live.stream("", ["/"], "ann") for _ in range(MAX_STREAMS_OF_SESSION)]
    assert live.refusal("ann") == (0, "")  # none has begun, so none holds a place
    for one in streams:
        await next_change(one)
    status, why = live.refusal("ann")
    assert (status, "8 browsers" in why) == (429, True)
    assert live.refusal("bob") == (0, "")
    await streams[0].aclose()
    assert live.refusal("ann") == (0, "")


async def test_all_sessions_together_have_a_limit_too() -> None:
    live = Pages().live()
    streams = [live.stream("", ["/"], f"session {number}") for number in range(MAX_STREAMS)]
    for one in streams:
        await anext(one)
    status, why = live.refusal("ann")
    assert (status, "do not update by themselves" in why) == (503, True)
    for one in streams:
        await one.aclose()
    assert live.refusal("ann") == (0, "")
