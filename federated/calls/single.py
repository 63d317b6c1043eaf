"""One instance, wherever it is: get and explain."""

from __future__ import annotations

from federated.calls.asking import Asking, asking
from federated.calls.lists import Lists, compiled
from federated.clock import Clock
from federated.encoded import sources
from federated.encoded.merge import Cursor
from federated.errors import Ambiguous, LocationsSilent, raise_refusal
from federated.locations.location import Location
from federated.locations.locations import Locations, unrefused
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound


class Single:
    """Asks for one instance by id. Both calls return an encoded answer.

    Raises:
        Ambiguous: several locations have it, and the caller named none.
        NotFound: no location has it, and all answered.
        LocationsSilent: no location that answered has it.
    """

    def __init__(self, locations: Locations, lists: Lists, clock: Clock) -> None:
        self._locations, self._lists, self._clock = locations, lists, clock

    async def get(self, message: pb.GetInstanceRequest, call: Call) -> bytes:
        """The instance."""
        find = compiled(
            pb.FindInstancesRequest(
                filter=pb.InstanceFilter(instance_id=[message.id]), field_mask=message.field_mask, read=message.read
            )
        )
        ask = asking(self._locations, message.read, (), call, self._clock)
        # Asked as a list first: whoever does not have it says so from memory, while GetInstance asks the store.
        answers = unrefused(await self._lists.everywhere(find, ask, {name: Cursor() for name in ask.names}))
        owners = [name for name, told in answers.said.items() if told.part.items]
        if len(owners) > 1:
            raise Ambiguous(message.id, owners)
        if not owners:
            return await self._get_surely(message, ask)
        ask.check(answers.silent, anybody=True)
        frame = answers.said[owners[0]].part.items[0].frame
        return frame + sources.encoded({n: t.source for n, t in answers.said.items()}, answers.silent)

    async def explain(self, message: pb.ExplainInstanceRequest, call: Call) -> bytes:
        """Why it is ready or not, in the words of its location."""
        ask = asking(self._locations, pb.ReadOptions(), (), call, self._clock)
        return await self._from_owner("ExplainInstance", message.SerializeToString(), message.id, ask, 6)

    async def _get_surely(self, message: pb.GetInstanceRequest, ask: Asking) -> bytes:
        """Nobody has it in memory; others may have stored it a moment ago, so every store is asked.

        A location that was silent the first time may answer now: what the caller demands holds for it still.
        """
        plain = pb.GetInstanceRequest(id=message.id, field_mask=message.field_mask)
        if message.read.consistency:
            plain.read.consistency = message.read.consistency
        return await self._from_owner("GetInstance", plain.SerializeToString(), message.id, ask, 3)

    async def _from_owner(self, method: str, request: bytes, instance_id: str, ask: Asking, number: int) -> bytes:
        """The answer of the one location that does not say NOT_FOUND; `number` is that of its field sources."""

        async def question(location: Location) -> bytes:
            demanding = request + ask.demand(location.name, 3)
            # That it has none, only its store can say.
            return await location.read(method, demanding, ask.left_s(), ask.metadata, needs_store=True)

        answers = await self._locations.ask(ask.names, question)
        raise_refusal({n: e for n, e in answers.refused.items() if e.reason != "NOT_FOUND"})
        if len(answers.said) > 1:
            raise Ambiguous(instance_id, answers.said)
        if not answers.said and answers.silent:
            raise LocationsSilent(answers.silent, f"no location that answers has {instance_id}, and others are silent")
        if not answers.said:
            raise NotFound(f"there is no instance {instance_id} in {' or '.join(ask.names)}")
        ask.check(answers.silent, anybody=True)
        body = next(iter(answers.said.values()))
        seen = {n: s.SerializeToString() for n in answers.refused if (s := _source(self._locations.get(n))) is not None}
        return body + sources.encoded(seen, answers.silent, number)


def _source(location: Location | None) -> pb.Source | None:
    return None if location is None else location.presence.source
