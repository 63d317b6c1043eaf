"""connect-node and a browser: Connect's and gRPC-Web's own clients in JavaScript."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tests.judges import protos
from tests.judges.everyday import on_both
from tests.judges.interop import site, take_over
from tests.judges.interop_service import learn
from tests.judges.processes import ROOT, must
from tests.judges.replica import Replica
from tests.judges.tools import node, on_path
from tests.judges.verdict import Verdict

_ALL_S: Final = 180.0
_BROWSERS: Final = ("chromium-headless-shell", "chromium")


def _hq(directory: Path) -> Path:
    """HQ's messages, as JavaScript reads them."""
    files = directory / "hq.binpb"
    files.write_bytes(protos.compiled(ROOT / "proto", "hqpb/v1/service.proto"))
    return files


async def connect_node(directory: Path) -> Verdict:
    """Connect, gRPC and gRPC-Web over HTTP/1.1 and HTTP/2: all kinds of calls on our test service, then a real HQ."""
    folder, version = await node("@connectrpc/connect-node")
    verdict = Verdict(version)
    (directory / "testing.binpb").write_bytes(learn())
    for tls in (False, True):
        async with site(directory, tls=tls) as at:
            base = f"https://localhost:{at.port}" if tls else f"http://127.0.0.1:{at.port}"
            order = ("node", folder / "connect_testing.mjs", directory / "testing.binpb", base)
            take_over(verdict, await must((*order, at.ca or ""), _ALL_S), "testing, TLS " if tls else "testing ")
    files = _hq(directory)

    async def judge(replica: Replica, prefix: str) -> None:
        order = ("node", folder / "connect_hq.mjs", files, replica.base, replica.ca or "", replica.authorization)
        take_over(verdict, await must(order, _ALL_S), f"HQ, {prefix}")

    await on_both(verdict, directory, judge)
    return verdict


async def browser(directory: Path) -> Verdict:
    """connect-web in Chromium, on a page of HQ's own: gRPC-Web and Connect, over HTTP/1.1 and (TLS) HTTP/2."""
    name = next(filter(shutil.which, _BROWSERS), _BROWSERS[-1])
    path, told = await on_path(name, name)
    folder, version = await node("@connectrpc/connect-web")
    verdict, files = Verdict(f"{told}, {version}"), _hq(directory)

    async def judge(replica: Replica, prefix: str) -> None:
        order = ("node", folder / "browser.mjs", path, files, replica.base, replica.authorization)
        take_over(verdict, await must(order, _ALL_S), prefix)

    await on_both(verdict, directory, judge)
    return verdict
