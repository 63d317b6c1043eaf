"""wait: until instances are as somebody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from clients.hqctl.exits import Exit
from clients.hqctl.rows import readiness, ready_revisions
from clients.hqctl.selecting import is_everything, selecting_by_options
from clients.hqctl.session import Session, complain, connected_with_its_own_timeout
from clients.hqctl.spans import Span
from clients.hqctl.words import plural, span, truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client
    from clients.progress import WatchItem

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
    """

    goal: Goal
    named: frozenset[str]
    seen: dict[str, str]
    met: set[str]
    synced: bool = False

    def put(self, instance: instance_pb2.Instance) -> str | None:
        """Its id if it has just got there."""
        instance_id = instance.meta.id
        self.seen[instance_id] = readiness(instance)
        if self.goal.holds is None or not self.goal.holds(instance):
            self.met.discard(instance_id)
            return None
        return self._newly(instance_id)

    def gone(self, instance_id: str) -> str | None:
        """Its id if that is what was waited for."""
        self.seen.pop(instance_id, None)
        self.met.discard(instance_id)
        return self._newly(instance_id) if self.goal.holds is None else None

    def forget(self) -> None:
        """Everything is shown anew."""
        self.seen.clear()
        self.met.clear()
        self.synced = False

    def missing(self) -> dict[str, str]:
        """Those that are not there yet, with the state they are in."""
        if self.goal.holds is None:
            return dict(self.seen)
        absent = {instance_id: "not there" for instance_id in self.named if instance_id not in self.seen}
        return {**absent, **{i: state for i, state in self.seen.items() if i not in self.met}}

    def is_done(self) -> bool:
        """Everything is known, and as it shall be. Nothing is never ready."""
        return self.synced and not self.missing() and (self.goal.holds is None or bool(self.seen))

    def _newly(self, instance_id: str) -> str | None:
        if instance_id in self.met:
            return None
        self.met.add(instance_id)
        return instance_id


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
    progress = Progress(goal, frozenset(ids), {}, set())

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
            for instance_id in _news(progress, item):
                click.echo(f"{instance_id} {progress.goal.word}")
            if progress.is_done():
                return


def _news(progress: Progress, item: WatchItem) -> Iterable[str]:
    from clients import progress as items

    found: list[str | None] = []
    match item:
        case items.SnapshotPart(instances):
            found = [progress.put(instance) for instance in instances]
        case items.Changes(events):
            found = [_event(progress, event) for event in events]
        case items.Synced():
            progress.synced = True
            if progress.goal.holds is None:
                found = [progress.gone(i) for i in sorted(progress.named) if i not in progress.seen]
        case items.Resync():
            progress.forget()
    return [one for one in found if one is not None]


def _event(progress: Progress, event: pb.WatchEvent) -> str | None:
    match event.WhichOneof("change"):
        case "put":
            return progress.put(event.put)
        case "delete":
            return progress.gone(event.delete.id)
        case _:
            return progress.gone(event.left.id)


def _late(progress: Progress, timeout_s: float) -> str:
    after = f"after {span(timeout_s)}"
    missing = sorted(progress.missing().items())
    if not progress.synced:
        return f"{after} HQ has not told how things are: is it there? `hqctl status` says more."
    if not missing:
        return f"{after} there is no instance that matches."
    named = ", ".join(f"{instance_id} ({state})" for instance_id, state in missing[:NAMED])
    more = ", …" if len(missing) > NAMED else ""
    return f"{after} {plural(len(missing), 'instance')} not {progress.goal.word}: {named}{more}. `hqctl why` tells why."
