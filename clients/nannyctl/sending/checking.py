"""Asking HQ what it would say to a plan, without storing anything."""

from __future__ import annotations

from dataclasses import replace

from hqclient.client import Client
from nannyctl.plans.actions import Action, Kind
from nannyctl.plans.batches import batches
from nannyctl.plans.plan import Plan
from nannyctl.sending.results import Outcome, Result
from nannyctl.sending.writing import write

_NO = frozenset({Outcome.REFUSED, Outcome.NOT_ALLOWED})


async def checked(client: Client, plan: Plan) -> Plan:
    """The plan, with what HQ would refuse as REFUSED.

    A conflict is no refusal: an upload would read again. Nor is silence: an upload would tell.
    """
    refused: dict[str, Result] = {}
    for batch in batches(plan.writes):
        results = await write(client, batch, validate_only=True)
        refused |= {result.id: result for result in results if result.outcome in _NO}
    return replace(plan, actions=tuple(_judged(action, refused) for action in plan.actions))


def _judged(action: Action, refused: dict[str, Result]) -> Action:
    if action.id not in refused:
        return action
    note = f"HQ would refuse it: {refused[action.id].message}"
    return Action(action.id, Kind.REFUSED, action.before, note=note)
