"""`hqctl wait`: the instances waited for, and which of them have reached the goal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.options import DurationParam
from hqcli.readable import plural, span, truth
from hqclient.watch_items import Changes, Interrupted, Key, Resync, Shown, SnapshotPart, Synced, WatchItem
from hqctl.asking.options import is_everything, selecting_by_options
from hqctl.asking.session import HqctlSession, complain, with_session_and_timeout
from hqctl.output.rows import readiness, ready_revisions
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

ABSENT = "does not exist"


@dataclass(slots=True)
class ReachedInstances:
    """Which instances have reached the goal.

    Attributes:
        holds: whether an instance is in the state that is waited for; None: instances shall be gone.
        named: ids that are waited for; empty: all that the watch shows.
        met: instances that have reached the goal.
        trouble: why there is no news from HQ at the moment, so that all this may be stale; empty: there is news.
        anything: at least one instance was shown.
    """

    holds: Callable[[instance_pb2.Instance], bool] | None
    named: frozenset[str]
    shown: Shown = field(default_factory=Shown)
    met: set[Key] = field(default_factory=set)
    trouble: str = ""
    anything: bool = False

    def apply_item(self, item: WatchItem) -> list[str]:
        """Apply an item; return the ids of those that have just reached the goal."""
        self.shown.apply_item(item)
        self.anything |= bool(self.shown.instances)
        self.trouble = item.error.message if isinstance(item, Interrupted) else ""
        match item:
            case SnapshotPart(instances):
                return [i.meta.id for i in instances if self._record_instance(i)]
            case Changes(events):
                return [told for event in events if (told := self._apply_event(event))]
            case Synced() if self.holds is None and self.shown.is_whole:
                return sorted(self._absent())
            case Resync():
                self.met &= self.shown.instances.keys()
        return []

    def missing(self) -> dict[str, str]:
        """Instances that have not reached the goal, with their current state."""
        waiting = {i.meta.id: readiness(i) for key, i in self.shown.instances.items() if key not in self.met}
        absent = self._absent() if self.holds is not None else ()
        return {**dict.fromkeys(absent, ABSENT), **waiting}

    def is_done(self) -> bool:
        """Whether every location is fully known and every instance has reached the goal. Without any instance: no."""
        something = self.holds is None or bool(self.shown.instances)
        return self.shown.is_whole and something and not self.missing()

    def _absent(self) -> frozenset[str]:
        return self.named - {instance_id for _, instance_id in self.shown.instances}

    def _record_instance(self, instance: instance_pb2.Instance) -> bool:
        """Record an instance; return whether it has just reached the goal."""
        key = (instance.meta.cluster, instance.meta.id)
        if self.holds is None or not self.holds(instance):
            self.met.discard(key)
            return False
        is_new = key not in self.met
        self.met.add(key)
        return is_new

    def _apply_event(self, event: pb.WatchEvent) -> str:
        """The id of the instance that has just reached the goal; empty: none has."""
        if event.HasField("put"):
            return event.put.meta.id if self._record_instance(event.put) else ""
        gone = event.delete if event.HasField("delete") else event.left
        self.met.discard((gone.cluster, gone.id))
        return gone.id if self.holds is None else ""


if TYPE_CHECKING:
    from hqclient.client import Client
    from hqctl.commands.waiting import ReachedInstances

NAMED = 5


class Goal(click.ParamType["Goal"]):
    """The state that is waited for."""

    name = "goal"

    def __init__(
        self, word: str = "", holds: Callable[[instance_pb2.Instance], bool] | None = None, pending: str = ""
    ) -> None:
        self.word = word
        self.pending = pending or f"not {word} yet"  # what to print for those that have not reached it
        self.holds = holds  # None: instances shall be gone

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Goal:
        word, _, detail = str(value).partition("=")
        match word.lower(), detail.lower():
            case ("ready", "") | ("condition", "ready"):
                return Goal("ready", lambda instance: truth(instance.status.ready) == "yes")
            case ("not-ready", "") | ("condition", "ready=false"):
                return Goal("not ready", lambda instance: truth(instance.status.ready) != "yes", "still ready")
            case ("revision", wanted) if wanted:
                return Goal(f"ready with {detail}", lambda instance: detail in ready_revisions(instance))
            case ("gone" | "delete" | "deleted", ""):
                return Goal("gone", None, "still there")
        return self.fail(f"{value!r} is not one of ready, not-ready, revision=REVISION, gone", param, ctx)


@click.command()
@click.argument("ids", nargs=-1, metavar="[INSTANCE]...")
@selecting_by_options
@click.option(
    "--for",
    "goal",
    type=Goal(),
    default="ready",
    metavar="ready|not-ready|revision=REVISION|gone",
    help="Condition to wait for. Default: ready.",
)
@click.option(
    "--timeout", type=DurationParam(), default=30.0, help="Give up after this time, e.g. 5m; 0: never. Default: 30s."
)
@with_session_and_timeout
def wait(session: HqctlSession, ids: tuple[str, ...], where: pb.InstanceFilter, goal: Goal, timeout: float) -> None:
    """Wait until instances, named or chosen by options, are ready (or not ready, or gone).

    Each is printed when it meets the condition; the command ends when all meet it at the same time. Of instances chosen
    by options at least one must exist (except with --for gone).
    """
    session = session.for_cluster(where) if ids else session
    _check_one_way(ids, where)
    where.instance_id.extend(ids)

    async def work(client: Client) -> Exit:
        from hqctl.commands.waiting import ReachedInstances

        awaited = ReachedInstances(goal.holds, frozenset(ids))
        try:
            async with asyncio.timeout(timeout or None):
                await _until_done(client, where, goal, awaited)
        except TimeoutError:
            complain(_late(goal, awaited, timeout))
            return Exit.TIMEOUT
        if not ids and not awaited.anything:
            complain("no instance matches: nothing to wait for.")
        return Exit.OK

    session.run(work)


def _check_one_way(ids: tuple[str, ...], where: pb.InstanceFilter) -> None:
    is_chosen = not is_everything(where)
    if ids and is_chosen:
        hint = (
            "; --ready selects instances; to wait for readiness: --for ready (the default)" if where.readiness else ""
        )
        raise click.UsageError(f"give ids or selection options, not both{hint}")
    if not ids and not is_chosen:
        raise click.UsageError("choose instances: either ids or selection options")


async def _until_done(client: Client, where: pb.InstanceFilter, goal: Goal, awaited: ReachedInstances) -> None:
    async with client.watch(where) as items:
        async for item in items:
            for instance_id in awaited.apply_item(item):
                click.echo(f"{instance_id} {goal.word}")
            if awaited.is_done():
                return


def _late(goal: Goal, awaited: ReachedInstances, timeout_s: float) -> str:
    after = f"timed out after {span(timeout_s)}"
    missing = sorted(awaited.missing().items())
    if not awaited.shown.is_whole:
        whose = ", ".join(awaited.shown.missing) or "HQ"
        why = f"; {awaited.trouble}" if awaited.trouble else ""
        return f"{after}: {whose} did not respond{why}. See `hqctl status`."
    if not missing:
        return f"{after}: no instance matches."
    named = ", ".join(one if state == "yes" else f"{one} ({state})" for one, state in missing[:NAMED])
    more = ", …" if len(missing) > NAMED else ""
    verb = "is" if len(missing) == 1 else "are"
    pending = f"{goal.pending} or missing" if any(state == ABSENT for _, state in missing) else goal.pending
    told = f"{after}: {plural(len(missing), 'instance')} {verb} {pending}: {named}{more}"
    if awaited.trouble:
        return f"{told}, as far as known: the connection to HQ was lost ({awaited.trouble}). See `hqctl status`."
    shown = next((instance_id for instance_id, state in missing if state != ABSENT), "")
    return f"{told}. See `hqctl why {shown}`." if shown and goal.holds else f"{told}."
