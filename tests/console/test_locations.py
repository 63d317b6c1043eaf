"""Two real locations behind a real gateway: what pages say while one of them is stopped, and when it is back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from console.backends.registry import RegistryClient
from console.backends.servers import Servers
from hqclient import Client
from tests.console.chromium import chromium, needs_chromium, screen
from tests.console.real import process
from tests.console.scene import console_over, instance, report
from tests.federated.federated_process import write_config
from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import eventually

pytestmark = [needs_chromium, pytest.mark.long]


@asynccontextmanager
async def location(name: str, address: str) -> AsyncIterator[None]:
    """One replica with three ready instances of `web`."""
    flags = ("--store", "memory", "--cluster", name, "--agents", "", "--grpc", address, "--http", "127.0.0.1:0")
    async with process("hq.main", "dev", *flags), Client([address]) as client:
        made = [instance(f"web-{name}-{number}", "web", f"{name}-node") for number in range(3)]

        async def are_taken() -> bool:
            """Not before the store is loaded."""
            return not any(result.HasField("error") for result in (await client.apply(made)).result)

        await eventually(are_taken)
        for one in made:
            await report(client, one, ready=True)
        yield


async def test_a_stopped_location_is_named_with_its_age_and_its_instances_come_back(tmp_path: Path) -> None:
    config = tmp_path / "federated.yaml"
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(("east", "west"), kept_ports(), strict=True)}
    placed = {name: [address] for name, address in addresses.items()}
    write_config(config, placed, timeout="1s")
    async with AsyncExitStack() as running:
        await running.enter_async_context(location("east", addresses["east"]))
        stopping = await running.enter_async_context(AsyncExitStack())
        await stopping.enter_async_context(location("west", addresses["west"]))
        gateway, _ = await running.enter_async_context(
            process("federated.main", *("--config", str(config), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"))
        )
        console = await running.enter_async_context(
            console_over(lambda: Servers(RegistryClient([gateway], placed, None)))
        )
        browser = await running.enter_async_context(chromium())
        shown = await running.enter_async_context(screen(browser, console.base))

        await shown.open("/")
        await shown.see("All is well")
        await stopping.aclose()
        await shown.see("location west is silent")
        await expect(shown.page.locator(".problems li").first.locator("time")).to_contain_text("just now")
        for path in ("/services", "/services/web", "/nodes", "/events", "/instances"):
            await shown.open(path)
            assert await shown.barriers() == [], path
            await expect(shown.page.locator("main")).to_contain_text("west")  # not only below the fold
            await expect(shown.page.locator("main")).to_contain_text(re.compile("does not answer|has not answered"))
        await shown.open("/nodes/west-node")
        await shown.see("Whether an instance is on this node is not known while west does not answer.")
        await shown.open("/services/web")
        await shown.see("web-east-0")
        await expect(shown.page.locator("footer .locations .bad")).to_have_count(1)
        await running.enter_async_context(location("west", addresses["west"]))
        await shown.see("web-west-0")
        await expect(shown.page.locator("footer .locations .bad")).to_have_count(0)
        assert shown.faults == []
