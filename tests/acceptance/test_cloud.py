"""`make cloud`: every part starts, knows the others, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import service_pb2 as pb
from tests.acceptance.test_demo import demo
from tests.support.process_ids import has_ended
from tests.support.sample_instances import eventually

PARTS = ("cms", "nanny", "walle", "console", "xds", "dns", "consul")


@pytest.mark.long
async def test_all_parts_start_and_nothing_is_left(tmp_path: Path) -> None:
    async with demo(tmp_path, "tools.cloud") as cloud:
        await cloud.shows("Ctrl-C stops everything", 110)
        addresses = dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))
        assert {*PARTS, "gateway", "east", "north", "west"} <= addresses.keys()
        async with Client([addresses["gateway"]]) as client:

            async def all_ready() -> bool:
                where = pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY)
                return sum([len(page.instances) async for page in client.find(where)]) == 300

            await eventually(all_ready, 60)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for part in ("console", "consul"):
            with direct.open(f"http://{addresses[part]}/livez", timeout=10) as answer:
                assert answer.status == 200
        children = cloud.children()
        assert await cloud.ends(signal.SIGINT) == 0
        await eventually(lambda: all(map(has_ended, children)))
        assert not cloud.data.exists()
