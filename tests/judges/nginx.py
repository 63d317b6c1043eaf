"""nginx over two DNS gateways: it resolves the name every second, while a service grows and rolls out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from tests.judges import tools
from tests.judges.envoy import listens, uses
from tests.judges.gateway_world import within
from tests.judges.haproxy import Balancer, say_who
from tests.judges.processes import ROOT, run, started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import GatewayProcess, programs
from tests.support.reserved_port import quiet_port

_EXAMPLE: Final = ROOT / "examples/gateways/nginx.conf"
_FOLDERS: Final = "".join(  # those of Debian's package are there only once it is installed
    f"{kind}_temp_path temp/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
_MANY: Final = 200
_SOME: Final = 10  # of the 16 that an answer over UDP has
_CHANGES: Final = 20
_AWAY_S: Final = 15.0  # nginx asks the next server after 5 s


@asynccontextmanager
async def _proxy(directory: Path, path: Path) -> AsyncIterator[tuple[Balancer, list[GatewayProcess], int]]:
    """nginx over an HQ whose service has one instance, `web-0`; and the port of all servers, 127.0.1.1 and so on."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(programs(directory))
        hq, port = await running.registry(), quiet_port()
        for number in range(_MANY):
            await stack.enter_async_context(await asyncio.start_server(say_who, f"127.0.1.{number + 1}", port))
        await hq.put("web-0", host="127.0.1.1", port=port)
        gateways = [await running.gateway("dns", hq, name=f"dns-{name}") for name in "ab"]
        at = Balancer(hq, quiet_port(), directory / "unused")
        config = _EXAMPLE.read_text().replace(":8080", f":{at.port}").replace(":8000", f":{port}")
        for address, gateway in zip(("127.0.0.1:7653", "127.0.0.1:7654"), gateways, strict=True):
            config = config.replace(address, gateway.dns_address)
        config = config.replace("/tmp/nginx.pid", "nginx.pid").replace("http {", "http {" + _FOLDERS, 1)
        (directory / "nginx.conf").write_text(config)
        order = (path, "-c", directory / "nginx.conf", "-p", directory, "-e", "stderr")
        await stack.enter_async_context(started(order, directory / "nginx.log"))
        await within(lambda: listens(at.port))
        yield at, gateways, port


async def nginx(directory: Path) -> Verdict:
    """Growth and a roll-out under load, and one of the gateways killed."""
    path, _ = await tools.on_path("nginx", "nginx", tools.NGINX)
    verdict = Verdict((await run((path, "-v"), 10.0)).text.splitlines()[0][:40])
    for folder in ("logs", "temp"):
        (directory / folder).mkdir()
    async with _proxy(directory, path) as (at, gateways, port):
        load = asyncio.create_task(at.load())
        try:
            await within(lambda: at.answered.total() >= 5)
            await verdict.case(f"1 to {_MANY} to 1", _growth(at, port), 240.0)
            await verdict.case(f"{_CHANGES} changes", _changes(at, port), 120.0)
            await verdict.case("one of two gateways killed", _kill_gateway(at, gateways[0]), 120.0)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
        verdict.count("no request failed", f"{dict(at.failed)}" if at.failed else "")
    return verdict


async def _growth(at: Balancer, port: int) -> None:
    for number in range(1, _MANY):
        await at.hq.put(f"web-{number}", host=f"127.0.1.{number + 1}", port=port)
    at.answered.clear()
    await within(lambda: len(at.answered) >= _SOME)
    for number in range(1, _MANY):
        await at.hq.delete(f"web-{number}")
    await uses(at, {"127.0.1.1"})


async def _changes(at: Balancer, port: int) -> None:
    await at.hq.put("web-1", host="127.0.1.2", port=port)
    for number in range(_CHANGES):
        here = (number + 1) % 2
        await at.hq.report(f"web-{here}", is_ready=True)
        await at.hq.report(f"web-{1 - here}", is_ready=False)
        await uses(at, {f"127.0.1.{here + 1}"})


async def _kill_gateway(at: Balancer, gateway: GatewayProcess) -> None:
    await gateway.kill()
    await asyncio.sleep(_AWAY_S)
    await at.hq.report("web-1", is_ready=True)
    await at.hq.report("web-0", is_ready=False)
    await uses(at, {"127.0.1.2"})
