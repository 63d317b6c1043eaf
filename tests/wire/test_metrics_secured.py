"""Every metric that a server has only because it is secured moves when what it tells of happens."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.metrics_scrape import Scraped, declared
from tests.support.rights_requests import create
from tests.support.secured import Caller, Secured, secure_channel, served


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_every_metric_of_security_moves(files: Secured) -> None:
    async with served(None) as plain:
        of_every_replica = declared(plain.server.metrics)
    files.audit.symlink_to("/dev/full")
    async with (
        served(files.security()) as replica,
        secure_channel(replica.addresses.grpc, files.authority) as channel,
    ):
        assert replica.security is not None
        scraped = Scraped(replica.server.metrics)
        assert (await Caller(channel).refusal("CountInstances", pb.CountInstancesRequest()))[0] == "UNAUTHENTICATED"
        admin = Caller(channel, files.issuer.token("admin"))
        assert (await admin.refusal("CreateInstance", create("web-1")))[0] == "UNAVAILABLE"
        scraped.look()
        files.audit.unlink()  # a disk with room again
        await admin.call("CreateInstance", create("web-1"))
        files.policy.write_text("roles: [")
        files.authority.issue("server", good_for=timedelta(days=2))
        replica.security.refresh()
        scraped.look()
    assert scraped.unmoved(leaving_out=of_every_replica) == set()
