"""The xDS gateway as a process: streams over gRPC, tokens, and an HQ that comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from gateways.xds.ads import DELTA_PATH, PATH
from gateways.xds.fixed_resources import ResourceType
from tests.support.gateway_process import GatewayProcess, Programs
from tests.support.secured import Secured
from xdspb.v1 import xds_pb2 as pb


class Stream:
    """One stream that wants endpoints."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def wants(self, *names: str) -> None:
        await self._call.write(pb.DiscoveryRequest(type_url=ResourceType.ENDPOINTS.value, resource_names=names))

    async def addresses(self) -> dict[str, list[str]]:
        """The next answer, by target."""
        async with asyncio.timeout(30):
            found = [pb.ClusterLoadAssignment.FromString(resource.value) for resource in await self._resources()]
        return {
            one.cluster_name: [
                endpoint.endpoint.address.socket_address.address
                for locality in one.endpoints
                for endpoint in locality.lb_endpoints
            ]
            for one in found
        }

    async def _resources(self) -> list[Any]:
        return [*(await self._call.read()).resources]

    async def is_quiet(self) -> None:
        """Nothing comes."""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._call.read()


class DeltaStream(Stream):
    """An incremental one."""

    async def wants(self, *names: str) -> None:
        await self._call.write(
            pb.DeltaDiscoveryRequest(type_url=ResourceType.ENDPOINTS.value, resource_names_subscribe=names)
        )

    async def _resources(self) -> list[Any]:
        return [one.resource for one in (await self._call.read()).resources]


_FORMS: dict[type[Stream], tuple[str, Any, Any]] = {
    Stream: (PATH, pb.DiscoveryRequest, pb.DiscoveryResponse),
    DeltaStream: (DELTA_PATH, pb.DeltaDiscoveryRequest, pb.DeltaDiscoveryResponse),
}


@asynccontextmanager
async def stream(gateway: GatewayProcess, token: str = "", form: type[Stream] = Stream) -> AsyncIterator[Stream]:
    path, request, response = _FORMS[form]
    metadata = [("authorization", f"Bearer {token}")] if token else []
    async with grpc.aio.insecure_channel(gateway.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield form(
            channel.stream_stream(
                f"/{path}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )(metadata=metadata)
        )


@pytest.mark.long
@pytest.mark.parametrize("form", _FORMS)
async def test_a_stream_follows_changes_and_is_quiet_while_hq_is_away(started: Programs, form: type[Stream]) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("web-2", host="10.0.0.2")
    gateway = await started.gateway("xds", hq)
    async with stream(gateway, form=form) as follows:
        await follows.wants("web")
        assert await follows.addresses() == {"web": ["10.0.0.1", "10.0.0.2"]}
        await hq.put("db-1", "db")
        await hq.report("web-2", is_ready=False)
        assert await follows.addresses() == {"web": ["10.0.0.1"]}
        hq.pause()
        await follows.is_quiet()


@pytest.mark.long
async def test_a_token_opens_the_services_of_its_policy_and_no_others(started: Programs) -> None:
    files = Secured(started.directory)
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("db-1", "db")
    plain = files.flags({k: v for k, v in files.given().items() if k in ("jwks", "policy", "issuer", "audience")})
    gateway = await started.gateway("xds", hq, *plain)
    async with stream(gateway, files.issuer.token("web-reader")) as follows:
        await follows.wants("web", "db")
        assert await follows.addresses() == {"web": ["10.0.0.1"]}
        await follows.is_quiet()
    async with stream(gateway) as unknown:  # refused before it asks; a write then ends as INTERNAL in grpc.aio
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await unknown.addresses()
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
