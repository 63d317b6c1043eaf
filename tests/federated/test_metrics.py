"""Every metric that a gateway has beside a replica's moves when what it tells of happens; the page names them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from federated.locations.race import Race
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.federated.conftest import RunningGateway, StartGateway, StartLocations, StartPair
from tests.federated.fake_location import FakeLocation
from tests.federated.federated_process import write_config
from tests.support.metrics_scrape import Scraped, declared
from tests.support.sample_instances import eventually
from tests.support.secured import Secured, served
from tests.support.watch_follower import Watching
from tools import gen_metrics_reference

EVERYTHING = pb.FindInstancesRequest()


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_every_metric_of_a_gateway_moves(start_pair: StartPair) -> None:
    async with served(None) as plain:
        of_every_replica = declared(plain.server.metrics)
    east, west, gateway = await start_pair(replicas=2, timeout="2s")
    scraped = Scraped(gateway.metrics)
    await _calls(gateway, scraped)
    await _a_slow_replica(gateway, east, scraped)
    await _a_resync(gateway, west, scraped)
    await _a_location_falls_silent(gateway, west, scraped)
    gateway.config.write_text("locations: [")
    await scraped.until("hq_federated_config_fault")
    write_config(gateway.config, {"east": east.addresses})
    await eventually(lambda: scraped.look()["hq_federated_location_replicas"] == 2, 60, "one location is left")
    assert scraped.unmoved(leaving_out=of_every_replica) == set()


async def test_the_page_names_every_metric_and_no_other(
    start_locations: StartLocations, start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = await start_gateway(await start_locations("east"))
    async with served(Secured(tmp_path).security()) as secured:
        shown = declared(gateway.metrics) | declared(secured.server.metrics)
    assert {one.name for one in gen_metrics_reference.all_declared()} == shown


async def _calls(gateway: RunningGateway, scraped: Scraped) -> None:
    meta = instance_pb2.InstanceMeta(id="web-1", cluster="east", service_id="web")
    await gateway.stub.CreateInstance(pb.CreateInstanceRequest(instance=instance_pb2.Instance(meta=meta)))
    for _ in range(50):  # so that the gateway knows what is usual
        await gateway.stub.FindInstances(EVERYTHING)
    scraped.look()


async def _a_slow_replica(gateway: RunningGateway, east: FakeLocation, scraped: Scraped) -> None:
    race = gateway.gateway.locations.by_name["east"].race
    first = race.replicas.all[0].address
    slow = east.replicas[east.addresses.index(first)]
    slow.delay_s = 1.0
    while race.stats.hedges_won == 0:
        _nobody_noticed(race)
        await gateway.stub.FindInstances(EVERYTHING)
    await scraped.until("hq_federated_location_hedges_won_total")
    await scraped.until("hq_federated_location_hedges_total")
    await slow.stop()
    slow.delay_s = 0.0
    await _ask_until(gateway, scraped, "hq_federated_location_probes_failed_total")
    while race.stats.failovers == 0:
        _nobody_noticed(race)
        await gateway.stub.FindInstances(EVERYTHING)
    await slow.restart()
    await scraped.until("hq_federated_location_replicas_healthy", 4)
    await scraped.until("hq_federated_location_probes_answered_total")


def _nobody_noticed(race: Race) -> None:
    """Yet, that a replica is slow or away: a stall of this machine may have set it aside, and then none asks it."""
    for replica in race.replicas.all:
        race.replicas.record_success(replica)


async def _a_resync(gateway: RunningGateway, west: FakeLocation, scraped: Scraped) -> None:
    watch = Watching(gateway.stub.WatchInstances(pb.WatchInstancesRequest()))
    await scraped.until("hq_federated_watches")
    await eventually(lambda: {"east", "west"} <= _synced(watch), 60, "a synced watch")
    west.oldest_token = west.version + 1_000
    for replica in west.replicas:
        await replica.stop()
        await replica.restart()
    await scraped.until("hq_federated_resyncs_total")
    await watch.end()


def _synced(watch: Watching) -> set[str]:
    return {source.cluster for m in watch.messages if m.kind == pb.WATCH_KIND_SYNCED for source in m.sources}


async def _a_location_falls_silent(gateway: RunningGateway, west: FakeLocation, scraped: Scraped) -> None:
    for replica in west.replicas:
        await replica.stop()
    await _ask_until(gateway, scraped, "hq_federated_location_reads_silent_total")
    await eventually(lambda: scraped.look()["hq_federated_location_up"] == 1, 60, "one location is up")


async def _ask_until(gateway: RunningGateway, scraped: Scraped, name: str) -> None:
    """Read until a metric has moved from nought."""

    async def moved() -> bool:
        await gateway.stub.FindInstances(EVERYTHING)
        return scraped.look()[name] >= 1

    await eventually(moved, 60, f"{name} moves")
