"""What tests of discovery share: a quick one, and waiting until something holds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hqclient.discovery import Discovery, DiscoverySettings, Service
from hqclient.discovery.feed import FeedSettings
from tests.clients.conftest import SETTINGS
from tests.clients.fake_hq import FakeReplica

QUICK = DiscoverySettings(client=SETTINGS, feed=FeedSettings(save_after_s=0.01, refused_s=0.02))


def discovery(replicas: Sequence[FakeReplica], directory: Path | None = None, **options: object) -> Discovery:
    addresses = [replica.address for replica in replicas]
    given: dict[str, Any] = {"settings": QUICK, "rng": random.Random(3), **options}
    return Discovery(addresses, state_dir=directory, **given)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)


def ids(service: Service) -> list[str]:
    return [endpoint.instance_id for endpoint in service.endpoints]
