"""Counts of several locations, added up."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from federated.calls.asking import Asking, asking
from federated.clock import Clock
from federated.encoded import merge, sources
from federated.errors import Silence
from federated.locations.location import Location
from federated.locations.locations import Locations, unrefused
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call

_METHOD = "CountInstances"


class Counts:
    """Asks locations for counts."""

    def __init__(self, locations: Locations, clock: Clock) -> None:
        self._locations, self._clock = locations, clock

    async def count(self, message: pb.CountInstancesRequest, call: Call) -> bytes:
        """The encoded answer: groups of one key added up. Raises ServiceError."""
        ask = asking(self._locations, message.read, message.filter.cluster, call, self._clock)

        async def question(location: Location) -> pb.CountInstancesResponse:
            return await self._ask(location, message, ask)

        answers = unrefused(await self._locations.ask(ask.names, question))
        ask.check(answers.silent, anybody=bool(answers.said))
        groups = merge.counted(answers.said.values())
        told = {name: answer.sources[-1].SerializeToString() for name, answer in answers.said.items()}
        return pb.CountInstancesResponse(groups=groups).SerializeToString() + sources.encoded(told, answers.silent)

    async def _ask(
        self, location: Location, message: pb.CountInstancesRequest, ask: Asking
    ) -> pb.CountInstancesResponse:
        plain = pb.CountInstancesRequest(filter=message.filter, group_by=message.group_by)
        key = ask.asker() + plain.SerializeToString()
        plain.read.consistency = message.read.consistency
        request = plain.SerializeToString() + ask.demand(location.name, 3)
        needs_store = ask.needs_store(location.name, message.read)
        try:
            body = await location.read(_METHOD, request, ask.left_s(), ask.metadata, needs_store=needs_store)
        except Silence as silence:
            kept = location.last_good.get(_METHOD, key)
            if kept is None or not ask.may_be_old(location.name, message.read, message.filter):
                raise
            old = _parsed(kept.body)
            told = old.sources.pop().SerializeToString()
            source = sources.last_good_source(told, self._clock.now() - kept.at, silence)
            old.sources.append(pb.Source.FromString(source))
            return old
        answer = _parsed(body)
        location.presence.saw(answer.sources[-1].SerializeToString())
        location.last_good.keep(_METHOD, key, body, self._clock.now())
        return answer


def _parsed(body: bytes) -> pb.CountInstancesResponse:
    try:
        answer = pb.CountInstancesResponse.FromString(body)
    except DecodeError as error:
        raise Silence(f"its response cannot be decoded: {error}") from error
    if not answer.sources:
        raise Silence("its response does not name its cluster")
    return answer
