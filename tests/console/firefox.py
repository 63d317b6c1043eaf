"""A real Firefox, the system's own, driven by WebDriver BiDi, which it speaks without a driver between."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import axe_playwright_python  # type: ignore[import-untyped]
import pytest
from websockets.asyncio.client import ClientConnection, connect

FOUND = shutil.which("firefox-esr") or shutil.which("firefox")
needs_firefox = pytest.mark.skipif(FOUND is None, reason="needs a Firefox (Debian: apt-get install firefox-esr)")
_WAIT_S: Final = 120.0  # as long as a machine at work needs to start a browser
_LOOK_S: Final = 0.1
_MOST_BYTES: Final = 1 << 26
_AXE: Final = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


class Firefox:
    """One tab in a profile of its own."""

    def __init__(self, socket: ClientConnection, base: str) -> None:
        self._socket, self._base, self._numbers, self._tab = socket, base, itertools.count(1), ""
        self.faults: list[str] = []

    async def begin(self, width: int) -> None:
        """A session, its tab, and what goes wrong on its pages."""
        always = {"acceptInsecureCerts": True}
        await self._ask("session.new", capabilities={"alwaysMatch": always})
        await self._ask("session.subscribe", events=["log.entryAdded"])
        tree = await self._ask("browsingContext.getTree")
        self._tab = tree["contexts"][0]["context"]
        size = {"width": width, "height": 900}
        await self._ask("browsingContext.setViewport", context=self._tab, viewport=size)

    async def open(self, path: str) -> None:
        """Go there, and wait until it is shown."""
        await self._ask("browsingContext.navigate", context=self._tab, url=self._base + path, wait="complete")

    async def run(self, script: str) -> Any:
        """The value of an expression (of a promise: what becomes of it), by way of JSON."""
        answer = await self._ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({script})))()",
            target={"context": self._tab},
            awaitPromise=True,
            userActivation=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value", "null"))

    async def until(self, script: str) -> None:
        """Wait until the expression is true; a page may go away meanwhile."""
        async with asyncio.timeout(_WAIT_S):
            while True:
                try:
                    if await self.run(f"Boolean({script})"):
                        return
                except AssertionError:
                    pass
                await asyncio.sleep(_LOOK_S)

    async def see(self, text: str) -> None:
        """Wait until the text is on the page."""
        await self.until(f"document.body && document.body.innerText.includes({json.dumps(text)})")

    async def press(self, *keys: str) -> None:
        """Keys, one after the other, as the keyboard sends them."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        await self._ask("input.performActions", context=self._tab, actions=[keyboard])

    async def click(self, selector: str) -> None:
        """With the mouse, in its middle."""
        at = await self.run(
            f"(one => {{ one.scrollIntoView({{block: 'center'}}); const box = one.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        moves = [
            {"type": "pointerMove", "x": round(at[0]), "y": round(at[1])},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        await self._ask("input.performActions", context=self._tab, actions=[mouse])

    async def barriers(self) -> list[str]:
        """What axe-core finds, of any severity."""
        found = await self.run(f"(async () => {{ {_AXE}; return (await axe.run()).violations; }})()")
        return [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}" for one in found]

    async def _ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        async with asyncio.timeout(_WAIT_S):
            while True:
                heard = json.loads(await self._socket.recv())
                if heard.get("method") == "log.entryAdded" and heard["params"]["level"] == "error":
                    self.faults.append(str(heard["params"]["text"]))
                if heard.get("id") == number:
                    assert heard["type"] == "success", heard
                    return heard["result"]


@asynccontextmanager
async def firefox(base: str, width: int = 1440, *, is_dark: bool = False) -> AsyncIterator[Firefox]:
    """A browser of its own before this console."""
    assert FOUND is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        scheme = f'user_pref("layout.css.prefers-color-scheme.content-override", {0 if is_dark else 1});\n'
        Path(profile, "user.js").write_text(scheme)
        process = await asyncio.create_subprocess_exec(
            *(FOUND, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"),
            env={"HOME": profile, "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            address = await asyncio.wait_for(_address(process.stderr), _WAIT_S)
            draining = asyncio.create_task(process.stderr.read())  # a full pipe would stop it
            async with connect(f"{address}/session", max_size=_MOST_BYTES, proxy=None) as socket:
                shown = Firefox(socket, base)
                await shown.begin(width)
                yield shown
            draining.cancel()
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _address(said: asyncio.StreamReader) -> str:
    lines: list[bytes] = []
    async for line in said:
        if found := re.search(rb"BiDi listening on (ws://\S+)", line):
            return found[1].decode()
        lines.append(line)
    raise AssertionError(f"Firefox ended before it listened: {b''.join(lines[-20:]).decode(errors='replace')}")
