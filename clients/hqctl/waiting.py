"""wait: until instances are as somebody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from clients.hqctl.exits import Exit
from clients.hqctl.rows import readiness, ready_revisions
from clients.hqctl.selecting import is_everything, selecting_by_options
from clients.hqctl.session import Session, complain, connected_with_its_own_timeout
from clients.hqctl.spans import Span
from clients.hqctl.words import plural, span, truth
from clients.progress import Changes, Resync, SnapshotPart, Synced, WatchItem
from clients.shown import Key, Shown
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client

NAMED = 5


class Goal(click.ParamType["Goal"]):
    """What is waited for."""

    name = "goal"

    def __init__(self, word: str = "", holds: Callable[[instance_pb2.Instance], bool] | None = None) -> None:
        self.word = word
        self.holds = holds  # None: that it is gone

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Goal:
        word, _, detail = str(value).partition("=")
        match word.lower(), detail.lower():
            case ("ready", "") | ("condition", "ready"):
                return Goal("ready", lambda instance: truth(instance.status.ready) == "yes")
            case ("not-ready", "") | ("condition", "ready=false"):
                return Goal("not ready", lambda instance: truth(instance.status.ready) != "yes")
            case ("revision", wanted) if wanted:
                return Goal(f"ready with {detail}", lambda instance: detail in ready_revisions(instance))
            case ("gone" | "delete" | "deleted", ""):
                return Goal("gone")
        return self.fail(f"{value!r} is not one of ready, not-ready, revision=REVISION, gone", param, ctx)


@dataclass(slots=True)
class Progress:
    """Which instances are where they shall be. No I/O.

    Attributes:
        named: ids that are waited for; empty: whatever the watch shows.
        met: those that are there.
    """

    goal: Goal
    named: frozenset[str]
    shown: Shown = field(default_factory=Shown)
    met: set[Key] = field(default_factory=set)

    def took(self, item: WatchItem) -> list[str]:
        """Something came: the ids of those that have just got there."""
        self.shown.took(item)
        match item:
            case SnapshotPart(instances):
                return [i.meta.id for i in instances if self._put(i)]
            case Changes(events):
                return [told for event in events if (told := self._changed(event))]
            case Synced() if self.goal.holds is None and self.shown.is_whole:
                return sorted(self._absent())
            case Resync():
                self.met &= self.shown.instances.keys()
        return []

    def missing(self) -> dict[str, str]:
        """Those that are not there yet, with the state they are in."""
        waiting = {i.meta.id: readiness(i) for key, i in self.shown.instances.items() if key not in self.met}
        absent = self._absent() if self.goal.holds is not None else ()
        return {**dict.fromkeys(absent, "not there"), **waiting}

    def is_done(self) -> bool:
        """Everything is known, of every location, and as it shall be. Nothing is never ready."""
        something = self.goal.holds is None or bool(self.shown.instances)
        return self.shown.is_whole and something and not self.missing()

    def _absent(self) -> frozenset[str]:
        return self.named - {instance_id for _, instance_id in self.shown.instances}

    def _put(self, instance: instance_pb2.Instance) -> bool:
        """Whether it has just got there."""
        key = (instance.meta.cluster, instance.meta.id)
        if self.goal.holds is None or not self.goal.holds(instance):
            self.met.discard(key)
            return False
        is_new = key not in self.met
        self.met.add(key)
        return is_new

    def _changed(self, event: pb.WatchEvent) -> str:
        """The id of the one that has just got there; empty: none has."""
        if event.HasField("put"):
            return event.put.meta.id if self._put(event.put) else ""
        gone = event.delete if event.HasField("delete") else event.left
        self.met.discard((gone.cluster, gone.id))
        return gone.id if self.goal.holds is None else ""


@click.command()
@click.argument("ids", nargs=-1, metavar="[INSTANCE]...")
@selecting_by_options
@click.option(
    "--for",
    "goal",
    type=Goal(),
    default="ready",
    metavar="ready|not-ready|revision=REVISION|gone",
    help="What to wait for. Default: ready.",
)
@click.option("--timeout", type=Span(), default=30.0, help="Give up after so long, e.g. 5m; 0: never. Default: 30s.")
@connected_with_its_own_timeout
def wait(session: Session, ids: tuple[str, ...], where: pb.InstanceFilter, goal: Goal, timeout: float) -> None:
    """Wait until instances, named or chosen by options, are ready (or not ready, or gone).

    Each is told when it gets there; it ends when all of them are at the same time. Of instances chosen by
    options at least one must be there to be ready.
    """
    session = session.of_cluster(where) if ids else session
    if bool(ids) != is_everything(where):
        raise click.UsageError("say for which: either ids, or options that choose instances")
    where.instance_id.extend(ids)
    progress = Progress(goal, frozenset(ids))

    async def work(client: Client) -> Exit:
        try:
            async with asyncio.timeout(timeout or None):
                await _until_done(client, where, progress)
        except TimeoutError:
            complain(_late(progress, timeout))
            return Exit.TIMEOUT
        return Exit.OK

    session.run(work)


async def _until_done(client: Client, where: pb.InstanceFilter, progress: Progress) -> None:
    async with client.watch(where) as items:
        async for item in items:
            for instance_id in progress.took(item):
                click.echo(f"{instance_id} {progress.goal.word}")
            if progress.is_done():
                return


def _late(progress: Progress, timeout_s: float) -> str:
    after = f"after {span(timeout_s)}"
    missing = sorted(progress.missing().items())
    if not progress.shown.is_whole:
        whose = ", ".join(progress.shown.missing) or "HQ"
        return f"{after} {whose} has not told how things are: is it there? `hqctl status` says more."
    if not missing:
        return f"{after} there is no instance that matches."
    named = ", ".join(f"{instance_id} ({state})" for instance_id, state in missing[:NAMED])
    more = ", …" if len(missing) > NAMED else ""
    return f"{after} {plural(len(missing), 'instance')} not {progress.goal.word}: {named}{more}. `hqctl why` tells why."
