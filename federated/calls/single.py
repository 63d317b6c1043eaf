"""One instance, wherever it is: get and explain."""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from federated.calls.asking import Asking, asking
from federated.calls.lists import CompiledFind, Lists, LocationPage, checked_id_answers, compile_find
from federated.clock import FederatedClock
from federated.encoded.answers import encoded_sources
from federated.encoded.merge import Cursor
from federated.errors import Ambiguous, LocationsSilent, NoAnswer
from federated.locations.location import Location
from federated.locations.locations import LocationAnswers, Locations, checked_answers
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound


class One(NamedTuple):
    """A compiled GetInstanceRequest: the id, and the FindInstancesRequest that looks for it."""

    id: str
    find: CompiledFind


def compiled_get(message: pb.GetInstanceRequest) -> One:
    """Prepare a request. It is not changed afterwards."""
    where = pb.InstanceFilter(instance_id=[message.id])
    request = pb.FindInstancesRequest(filter=where, field_mask=message.field_mask, read=message.read)
    return One(message.id, compile_find(request))


class _OwnerAnswer(NamedTuple):
    """The location that has an instance, and the answers of all locations that were asked."""

    owner: str
    answers: LocationAnswers[LocationPage]


class Single:
    """Asks for one instance by id. Both calls return an encoded answer.

    Raises:
        Ambiguous: several locations have it, and the caller named none.
        NotFound: no location has it, and all answered.
        LocationsSilent: no location that answered has it.
    """

    def __init__(self, locations: Locations, lists: Lists, clock: FederatedClock) -> None:
        self._locations, self._lists, self._clock = locations, lists, clock

    async def get(self, wanted: One, call: Call) -> bytes:
        """The instance."""
        ask = asking(self._locations, wanted.find.message.read, (), call, self._clock)
        owner, answers = await self._find_owner(wanted, ask)
        frame = answers.said[owner].part.items[0].frame
        return frame + encoded_sources({n: t.source for n, t in answers.said.items()}, answers.silent)

    async def explain(self, message: pb.ExplainInstanceRequest, call: Call) -> bytes:
        """Why the instance is ready or not, as its location explains it."""
        ask = asking(self._locations, pb.ReadOptions(), (), call, self._clock)
        request = pb.FindInstancesRequest(filter=pb.InstanceFilter(instance_id=[message.id]))
        request.field_mask.paths.append("meta.id")
        owner, answers = await self._find_owner(One(message.id, compile_find(request)), ask)
        told = checked_answers(
            await self._locations.ask([owner], lambda location: _explain_instance(location, message, ask))
        )
        if not told.said:
            raise LocationsSilent(told.silent)
        others = {n: t.source for n, t in answers.said.items() if n != owner}
        return told.said[owner] + encoded_sources(others, answers.silent, 6)

    async def _find_owner(self, wanted: One, ask: Asking) -> _OwnerAnswer:
        """Find the instance's location with a list call, from memory first: an empty list, too, has a Source.

        GetInstance would ask the store, and its NOT_FOUND could come from a stray replica of another cluster.
        """
        instance_id, find = wanted
        answers = await self._everywhere(find, ask)
        if not any(told.part.items for told in answers.said.values()):
            # It may just have been stored, so every store is asked. A location that was silent the first
            # time may answer now: the caller's demands still apply to it.
            request = pb.FindInstancesRequest()
            request.CopyFrom(find.message)
            request.read.consistency = pb.READ_CONSISTENCY_STRONG
            answers = await self._everywhere(compile_find(request), ask)
        owners = [name for name, told in answers.said.items() if told.part.items]
        if len(owners) > 1:
            raise Ambiguous(instance_id, owners)
        if not owners and answers.silent:
            raise LocationsSilent(
                answers.silent, f"no reachable location has {instance_id}, and others are unreachable"
            )
        if not owners:
            raise NotFound(f"there is no instance {instance_id} in {' or '.join(ask.names)}")
        ask.check(answers.silent, anybody=True)
        return _OwnerAnswer(owners[0], answers)

    async def _everywhere(self, find: CompiledFind, ask: Asking) -> LocationAnswers[LocationPage]:
        cursors = dict.fromkeys(ask.names, Cursor())
        return checked_id_answers(await self._lists.everywhere(find, ask, cursors), ["id"])


async def _explain_instance(location: Location, message: pb.ExplainInstanceRequest, ask: Asking) -> bytes:
    try:
        request = message.SerializeToString()
        # The instance existed a moment ago: the location asks its store before it answers NOT_FOUND.
        body = await location.read("ExplainInstance", request, ask.left_s(), ask.metadata, needs_store=True)
        answer = pb.ExplainInstanceResponse.FromString(body)
    except HqApiError as error:
        if error.reason != "NOT_FOUND":
            raise
        raise NoAnswer("it had the instance a moment ago, and one of its replicas no longer has it: retry") from error
    except DecodeError as error:
        raise NoAnswer(f"its response cannot be decoded: {error}") from error
    location.health.record_source(answer.sources[-1].SerializeToString() if answer.sources else b"")
    return body
