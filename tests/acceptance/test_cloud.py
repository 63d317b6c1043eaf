"""`make cloud`: every part starts, knows the others, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from hqclient.client import Client
from hqpb.v1 import service_pb2 as pb
from tests.acceptance.test_demo import demo
from tests.support.process_ids import has_ended
from tests.support.sample_instances import eventually
from tests.support.walle.running import call_json
from wallepb.v1.service_pb2 import GetHostRequest

PARTS = ("cms", "nanny", "walle", "console", "xds", "dns", "consul")


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_all_parts_start_and_nothing_is_left(tmp_path: Path) -> None:
    async with demo(tmp_path, "tools.cloud") as cloud:
        await cloud.shows("Ctrl-C stops everything", 110)
        addresses = dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))
        assert {*PARTS, "gateway", "east", "north", "west"} <= addresses.keys()
        async with Client([addresses["gateway"]]) as client:

            async def all_ready() -> bool:
                where = pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY)
                return sum([len(page.instances) async for page in client.find(where)]) == 312  # twelve are Nanny's

            await eventually(all_ready, 60)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for part in ("console", "consul"):
            with direct.open(f"http://{addresses[part]}/livez", timeout=10) as answer:
                assert answer.status == 200
        for path, told in (("/hosts", "40 hosts in 8 racks"), ("/services/shop/snapshots", "first version")):
            with direct.open(f"http://{addresses['console']}{path}", timeout=10) as answer:
                assert told in answer.read().decode()
        await a_broken_host_is_healed(addresses, cloud.data / "broken")
        children = cloud.children()
        assert await cloud.ends(signal.SIGINT) == 0
        await eventually(lambda: all(map(has_ended, children)))
        assert not cloud.data.exists()


async def a_broken_host_is_healed(addresses: dict[str, str], broken: Path) -> None:
    """As the cloud tells newcomers: all agents of a host fall silent, and Wall-E reboots it with leave of the CMS."""

    async def ask(request: Message) -> dict[str, Any]:
        return await call_json(addresses["walle"], request)

    (broken / "east-n03").touch()

    async def is_rebooted() -> bool:
        host = (await ask(GetHostRequest(host="east-n03")))["host"]
        done = [one for one in host.get("history", []) if one["kind"] == "OPERATION_KIND_REBOOT"]
        return bool(done) and done[0]["outcome"] == "OUTCOME_DONE"

    await eventually(is_rebooted, 120)
    assert not (broken / "east-n03").exists()
