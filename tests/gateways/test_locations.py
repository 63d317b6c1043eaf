"""A gateway before a federation gateway over two locations, of which one goes away."""

from __future__ import annotations

from pathlib import Path

from tests.gateways.test_dns import answers, asked
from tests.support.gateway_process import Program, Programs, Registry

WEB = "web.service.hq.internal."


async def federated(started: Programs, east: Registry, west: Registry) -> Program:
    """`hq-federated` over both."""
    config = Path(started.directory) / "federated.yaml"
    config.write_text(f"locations:\n  east:\n    replicas: ['{east.grpc}']\n  west:\n    replicas: ['{west.grpc}']\n")
    arguments = ("--config", str(config), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    front = Program("federated.main", arguments, started.directory / "federated.log")
    await started.add(front)
    return front


async def test_a_location_that_goes_away_keeps_its_instances_and_denies_nothing_it_might_have(
    started: Programs,
) -> None:
    east, west = await started.registry("east", "east"), await started.registry("west", "west")
    await east.put("web-1", host="10.0.0.1")
    await west.put("web-2", host="10.0.0.2")
    front = await federated(started, east, west)
    gateway = await started.gateway("dns", front.grpc)
    both = ("NOERROR", ["10.0.0.1", "10.0.0.2"])
    await answers(gateway, WEB, both)
    await answers(gateway, "web.service.west.dc.hq.internal.", ("NOERROR", ["10.0.0.2"]))
    await answers(gateway, "db.service.hq.internal.", ("NXDOMAIN", []))
    await gateway.is_saved("web-1", "web-2")

    await west.kill()
    await east.put("web-3", host="10.0.0.3")
    await answers(gateway, WEB, ("NOERROR", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]))
    while "missing locations: west" not in str(await asked(gateway.dns, f"_why.{WEB}", "TXT")):
        pass
    assert await asked(gateway.dns, "db.service.hq.internal.") == ("NXDOMAIN", [])

    await gateway.is_saved("web-3")
    await gateway.kill()
    again = await started.gateway("dns", front.grpc)
    await answers(again, WEB, ("NOERROR", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]))
    await answers(again, "db.service.east.dc.hq.internal.", ("NXDOMAIN", []))
    assert await asked(again.dns, "db.service.hq.internal.") == ("SERVFAIL", [])
    assert await asked(again.dns, "db.service.west.dc.hq.internal.") == ("SERVFAIL", [])


async def test_a_gateway_that_starts_while_a_location_is_away_shows_the_others(started: Programs) -> None:
    east, west = await started.registry("east", "east"), await started.registry("west", "west")
    await east.put("web-1", host="10.0.0.1")
    front = await federated(started, east, west)
    await west.kill()
    gateway = await started.gateway("dns", front.grpc)
    await answers(gateway, WEB, ("NOERROR", ["10.0.0.1"]))
    assert await asked(gateway.dns, "db.service.hq.internal.") == ("SERVFAIL", [])
    assert await asked(gateway.dns, "db.service.east.dc.hq.internal.") == ("NXDOMAIN", [])
