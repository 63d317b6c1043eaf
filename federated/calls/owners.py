"""Which location an instance lives in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from federated.calls.asking import Asking, caller_metadata, caller_token
from federated.calls.lists import Lists, checked_id_answers, compile_find
from federated.clock import FederatedClock
from federated.encoded.merge import Cursor
from federated.errors import NAME_IT, Ambiguous, LocationsSilent, NoAnswer
from federated.locations.locations import Locations
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound


@dataclass(frozen=True, slots=True)
class Owners:
    """Who has which instance.

    Attributes:
        by_id: names of the locations that have it; ids that no location has are missing.
        silent: locations that may have any of them, too.
        asked: all locations.
    """

    by_id: Mapping[str, Sequence[str]]
    silent: Mapping[str, NoAnswer]
    asked: Sequence[str]

    def one(self, instance_id: str) -> str:
        """The only location that has it.

        Raises:
            Ambiguous: several have it.
            LocationsSilent: a silent location may have it, too.
            NotFound: no location has it.
        """
        found = self.by_id.get(instance_id, ())
        if len(found) > 1:
            raise Ambiguous(instance_id, found)
        if self.silent:
            known = f"{found[0]} has {instance_id}" if found else f"no reachable location has {instance_id}"
            raise LocationsSilent(self.silent, f"{known}, but an unreachable one may have it too: {NAME_IT}")
        if not found:
            raise NotFound(f"there is no instance {instance_id} in {' or '.join(self.asked)}")
        return found[0]


class OwnerSearch:
    """Asks every location for ids."""

    def __init__(self, locations: Locations, lists: Lists, clock: FederatedClock) -> None:
        self._locations, self._lists, self._clock = locations, lists, clock

    async def owners(self, fields: Mapping[str, str], deadline: float | None, call: Call) -> Owners:
        """Which locations have these instances. Memory can show that one does; only the stores can show that none does.

        Args:
            fields: by id, in which field the caller sent it.

        Raises:
            ServiceError: an id is malformed.
        """
        found = await self._ask(fields, deadline, pb.ReadOptions(), call)
        if found.silent or len(found.by_id) == len(fields):
            return found
        missing = {id_: field for id_, field in fields.items() if id_ not in found.by_id}
        strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
        surely = await self._ask(missing, deadline, strong, call)
        return Owners({**found.by_id, **surely.by_id}, surely.silent, found.asked)

    async def _ask(self, fields: Mapping[str, str], deadline: float | None, read: pb.ReadOptions, call: Call) -> Owners:
        request = pb.FindInstancesRequest(filter=pb.InstanceFilter(instance_id=fields), read=read)
        request.field_mask.paths.extend(("meta.id", "meta.cluster"))
        names = list(self._locations.by_name)
        ask = Asking(
            names,
            all_required=False,
            last_good=False,
            demands={},
            deadline=deadline,
            clock=self._clock,
            token=caller_token(call),
            metadata=caller_metadata(call),
        )
        find, cursors = compile_find(request), dict.fromkeys(names, Cursor())
        by_id: defaultdict[str, list[str]] = defaultdict(list)
        silent: dict[str, NoAnswer] = {}
        # Page sizes count whole instances, whatever the mask: a thousand ids may take several pages.
        while cursors:
            answers = checked_id_answers(await self._lists.everywhere(find, ask, cursors), list(fields.values()))
            silent.update(answers.silent)
            cursors = {n: Cursor(t.part.next_page_token) for n, t in answers.said.items() if t.part.next_page_token}
            for name, told in answers.said.items():
                for item in told.part.items:
                    by_id[item.id.decode()].append(name)
        return Owners(by_id, silent, names)
