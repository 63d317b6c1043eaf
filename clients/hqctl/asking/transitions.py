"""Expiries and recoveries that the named replicas remember, merged into one list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hqctl.asking.session import HqctlSession
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

STRAGGLERS_S = 1.0  # how much longer to wait after the first answer


class Remembered(NamedTuple):
    """Transitions, newest first, and who remembers them."""

    transitions: Sequence[admin_pb2.Transition]
    sources: Sequence[pb.Source]


def identity(transition: admin_pb2.Transition) -> tuple[int, str, str]:
    """Version, instance and revision: a transition's identity, the same at every replica."""
    return transition.version, transition.instance_id, transition.revision_id


def merged_transitions(answers: Iterable[admin_pb2.ListTransitionsResponse], limit: int) -> Remembered:
    """Each transition once: a recently started replica knows only a few."""
    told = list(answers)
    found = {identity(one): one for answer in told for one in answer.transitions}
    newest = sorted(found.values(), key=identity, reverse=True)
    return Remembered(newest[:limit], [answer.source for answer in told])


async def fetch_transitions(session: HqctlSession, instance_id: str = "", limit: int = 1000) -> Remembered:
    """Ask every server, each by itself. Raises HqApiError if none answers."""
    from hqclient.client import HqApiError

    async def ask(address: str) -> admin_pb2.ListTransitionsResponse | HqApiError:
        async with session.client((address,)) as client:
            try:
                return await client.admin.list_transitions(instance_id, page_size=limit)
            except HqApiError as error:
                return error

    tasks = [asyncio.create_task(ask(address)) for address in session.servers]
    try:
        for asked in asyncio.as_completed(tasks):
            if not isinstance(await asked, HqApiError):
                break
        done, _ = await asyncio.wait(tasks, timeout=STRAGGLERS_S)
    finally:
        for task in tasks:
            task.cancel()
    told = [task.result() for task in tasks if task in done]
    answers = [one for one in told if isinstance(one, admin_pb2.ListTransitionsResponse)]
    if not answers:
        raise next(one for one in told if isinstance(one, HqApiError))
    return merged_transitions(answers, limit)
