"""The calls: streams of all types (ADS), and of one type, as Envoy asks for the endpoints of its own clusters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from functools import partial
from typing import Any, Final

from gateways.picture.picture import EndpointView
from gateways.xds.delta import DeltaSubscriptions
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.resources import Resources
from gateways.xds.stream import XdsCounts, XdsStream
from gateways.xds.subscriptions import Subscriptions
from serving.calls.methods import Answer, Call, Duplex, Method
from serving.encoding.jsonio import parse_json, parse_proto
from serving.errors import invalid
from serving.rights.access import Access
from serving.rights.reach import Of, narrowed_reach
from serving.rights.rules import READ
from xdspb.v1 import xds_pb2 as pb

log = logging.getLogger(__name__)

_EVERYTHING: Final = ""  # not a valid service id: what is known as a whole changed
StreamForm = type[Subscriptions] | type[DeltaSubscriptions]
PATH: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
DELTA_PATH: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
SINGLE_PATHS: Final = {
    "envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters": ResourceType.CLUSTER,
    "envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints": ResourceType.ENDPOINTS,
    "envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners": ResourceType.LISTENER,
    "envoy.service.route.v3.RouteDiscoveryService/StreamRoutes": ResourceType.ROUTES,
}
PATHS: Final[dict[str, tuple[StreamForm, ResourceType | None]]] = {
    PATH: (Subscriptions, None),
    DELTA_PATH: (DeltaSubscriptions, None),
    **{path: (Subscriptions, kind) for path, kind in SINGLE_PATHS.items()},
    **{path.replace("/Stream", "/Delta"): (DeltaSubscriptions, kind) for path, kind in SINGLE_PATHS.items()},
}
"""The form of each stream, and the type that it is about; None: all of them."""


class Encoded:
    """An answer that is encoded already."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        self._body = body

    def proto(self) -> bytes:
        return self._body

    def json(self) -> bytes:
        raise NotImplementedError("xDS is spoken in protobuf")


class Ads:
    """Serves streams.

    Attributes:
        counts: of all of them.
    """

    def __init__(self, picture: EndpointView, resources: Resources, location: str = "") -> None:
        """`location`: for clients that do not report theirs."""
        self._picture, self._resources, self._location = picture, resources, location
        self.counts = XdsCounts()
        self._streams: dict[XdsStream, asyncio.Event] = {}
        self._concerned: dict[str, dict[XdsStream, None]] = {}  # by service; empty: streams that want all services
        self._news: set[str] = set()  # services that changed in this turn of the loop
        picture.listen(self._on_services_changed)

    def methods(self) -> list[Method]:
        """Methods for a server's table."""
        return [self._method(path, form, kind) for path, (form, kind) in PATHS.items()]

    def _method(self, path: str, form: StreamForm, only: ResourceType | None) -> Method:
        request = pb.DeltaDiscoveryRequest if form is DeltaSubscriptions else pb.DiscoveryRequest
        run = partial(self.run, only=only, form=form)
        parsers = parse_proto(request, most=None), parse_json(request, most=None)  # streams count names themselves
        return Duplex(path, *parsers, run, READ, narrowed_reach(Of.SERVICE))

    async def run(
        self,
        requests: AsyncIterator[Any],
        call: Call,
        only: ResourceType | None = None,
        form: StreamForm = Subscriptions,
    ) -> AsyncIterator[Answer]:
        """One stream, until its client ends it. `only`: the type that it is about; None: all of them."""
        stream = form(self._resources, self.counts, _reader(call.access), self._location)
        wake = self._streams[stream] = asyncio.Event()
        self.counts.streams += 1
        reading = asyncio.create_task(self._read_requests(requests, stream, wake, only), name="xDS requests")
        try:
            while not reading.done():
                await wake.wait()
                wake.clear()
                # Changes during a send go into the next answer: a slow client gets fewer answers, not older ones.
                for body in stream.due():
                    yield Encoded(body)
            reading.result()
        finally:
            self.counts.streams -= 1
            self._note(stream, _concerns(stream), ())
            del self._streams[stream]
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_requests(
        self, requests: AsyncIterator[Any], stream: XdsStream, wake: asyncio.Event, only: ResourceType | None
    ) -> None:
        try:
            async for request in requests:
                if only is not None:
                    _check_type(request, only)
                before = _concerns(stream)
                stream.request(request, self._picture.coverage.locations)
                self._note(stream, before, _concerns(stream))
                wake.set()
        finally:
            wake.set()

    def _note(self, stream: XdsStream, before: Collection[str], after: Collection[str]) -> None:
        """Index a stream by its services, so that a change only costs the streams concerned."""
        for service in {*before} - {*after}:
            concerned = self._concerned.get(service, {})
            concerned.pop(stream, None)
            if not concerned:
                self._concerned.pop(service, None)
        for service in after:
            self._concerned.setdefault(service, {})[stream] = None

    def _on_services_changed(self, services: Collection[str]) -> None:
        """Notify streams once per turn of the event loop, however many steps it has: each may rebuild endpoints."""
        if not self._news:
            asyncio.get_running_loop().call_soon(self._notify_streams)
        self._news.update(services or (_EVERYTHING,))

    def _notify_streams(self) -> None:
        news, self._news = self._news, set()
        services = news - {_EVERYTHING}
        found: list[Collection[XdsStream]] = [self._concerned.get(service, {}) for service in (*services, "")]
        if _EVERYTHING in news:
            services, found = set(), [self._streams]
        for stream in {stream: None for streams in found for stream in streams}:
            if stream.on_services_changed(services):
                self._streams[stream].set()


def _check_type(request: Any, only: ResourceType) -> None:
    """Set the type of a request, which may leave it out on a stream of one type. Raises InvalidRequest."""
    if request.type_url not in ("", only.value):
        raise invalid("type_url", f"{request.type_url[:200]!r} on a stream of {only.value}: use ADS for several types")
    request.type_url = only.value


def _concerns(stream: XdsStream) -> list[str]:
    return [*stream.services, *([""] if stream.wants_all else [])]


def _reader(access: Access) -> Any:
    """A function that says whether the caller may read a service."""
    return lambda service: access.proves((service,), ())
