"""Pages of one person come a few at a time, so that others' pages come between them."""

from __future__ import annotations

import asyncio

import jwt

from console.app import MOST_AT_ONCE, App
from console.site.cookies import SESSION
from console.site.rendering import Templates
from console.site.sealing import Seal
from console.site.shield import Shield
from console.site.visits import Redirect, Route, Routes, Visit
from serving.standard.site import SiteRequest


async def test_somebody_who_opens_hundreds_of_pages_keeps_nobody_waiting() -> None:
    seal, gate, begun = Seal(b"k" * 32), asyncio.Event(), []

    async def page(visit: Visit) -> Redirect:
        begun.append(visit.token)
        await gate.wait()
        return Redirect("/")

    app = App(Routes([Route("GET", "/slow", page)]), Templates({}), seal, lambda: 0.0, is_open=False)
    app.shield = Shield("console:1")
    ann, again, bob = (
        jwt.encode({"sub": who, "jti": id_}, "k" * 32) for who, id_ in (("ann", "1"), ("ann", "2"), ("bob", "3"))
    )

    def ask(token: str) -> asyncio.Task[object]:
        cookie = f"{SESSION}={seal.seal('session', token)}".encode()
        return asyncio.create_task(app(SiteRequest("GET", "/slow", b"", {b"cookie": cookie}, "console:1")))

    asked = [ask(token) for token in [ann, again] * 50]
    await asyncio.sleep(0)
    asked.append(ask(bob))
    for _ in range(3):
        await asyncio.sleep(0)
    assert begun == [ann, again] * (MOST_AT_ONCE // 2) + [bob]
    gate.set()
    await asyncio.gather(*asked)
    assert len(begun) == len(asked)
