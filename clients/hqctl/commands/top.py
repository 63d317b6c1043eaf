"""top: services by size, readiness and churn."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_data
from hqcli.options import DurationParam
from hqcli.readable import span, truth
from hqcli.terminal import print_table
from hqcli.watching import watched
from hqctl.asking.options import selecting
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.output.sources import merged_sources, not_of, tell_unknown_services, warn_of
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

FIELDS = ("meta.service_id", "meta.modification_time", "status.ready")


@dataclass(slots=True)
class ServiceRow:
    """One line: a service's instances, and how they changed lately.

    Attributes:
        spec_changes: instances whose spec was written lately.
        ready_changes: instances whose readiness changed lately, either way.
    """

    name: str
    instances: int = 0
    ready: int = 0
    unknown: int = 0
    spec_changes: int = 0
    ready_changes: int = 0

    def add(self, instance: instance_pb2.Instance, since_s: float) -> None:
        """Count an instance."""
        self.instances += 1
        self.ready += truth(instance.status.ready) == "yes"
        self.unknown += truth(instance.status.ready) == "unknown"
        self.spec_changes += instance.meta.modification_time.seconds >= since_s
        ready = instance.status.ready  # if unknown, it never changed: the time is the creation's
        self.ready_changes += bool(ready.status) and ready.last_transition_time.seconds >= since_s

    def row(self) -> list[str]:
        """The cells."""
        share = f"{self.ready * 100 // self.instances}%"
        numbers = (self.instances, self.ready, self.instances - self.ready - self.unknown, self.unknown)
        return [self.name or "-", *map(str, numbers), share, str(self.spec_changes), str(self.ready_changes)]


SORTINGS = {
    "size": lambda s: (-s.instances, s.name),
    "not-ready": lambda s: (s.ready - s.instances, s.name),
    "churn": lambda s: (-s.spec_changes - s.ready_changes, s.name),
    "name": lambda s: (s.name,),
}


@click.command()
@watched
@selecting
@click.option("--since", type=DurationParam(), default=3600.0, help="How far back to look. Default: 1h.")
@click.option(
    "--sort-by", type=click.Choice(list(SORTINGS)), default="size", show_default=True, help="Which come first."
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most this many services.")
@click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
@output_option(*LISTS)
@with_session
def top(
    session: HqctlSession,
    where: pb.InstanceFilter,
    since: float,
    sort_by: str,
    limit: int,
    no_headers: bool,
    output: str,
) -> None:
    """Show services by size, readiness and churn.

    SPEC-CHANGES counts instances whose spec changed recently, READY-CHANGES those whose readiness changed.
    All instances are read for this: with a million of them, mind the load.
    """

    async def work(client: Client) -> Exit:
        pages = [page async for page in client.find(where, fields=FIELDS)]
        found = services((i for page in pages for i in page.instances), time.time() - since)
        ranked = sorted(found, key=SORTINGS[sort_by])[:limit]
        sources = merged_sources(page.sources for page in pages)
        if wrong := not_of([*where.cluster, session.cluster], sources):
            complain(wrong)
            return Exit.REFUSED
        _print_services(ranked, len(found), since, sources, output, headers=not no_headers)
        if not found:
            await tell_unknown_services(client, where, sources)
        return Exit.OK

    session.run(work)


def services(instances: Iterable[instance_pb2.Instance], since_s: float) -> list[ServiceRow]:
    """Instances counted by service; `since_s` is a wall time in seconds."""
    found: dict[str, ServiceRow] = {}
    for instance in instances:
        name = instance.meta.service_id
        found.setdefault(name, ServiceRow(name)).add(instance, since_s)
    return list(found.values())


def _print_services(
    ranked: list[ServiceRow], count: int, since_s: float, sources: list[pb.Source], output: str, *, headers: bool
) -> None:
    if is_data(output):
        fields = ("service", "instances", "ready", "unknown", "specChanges", "readyChanges")
        values = ((s.name, s.instances, s.ready, s.unknown, s.spec_changes, s.ready_changes) for s in ranked)
        items = [dict(zip(fields, one, strict=True)) for one in values]
        print_data({"kind": "List", "items": items, "since": f"{since_s:g}s"}, output)
    elif ranked:
        names = ("SERVICE", "INSTANCES", "READY", "NOT-READY", "UNKNOWN", "SHARE", *_lately(since_s))
        print_table(names, [service.row() for service in ranked], headers=headers)
    else:
        click.echo("No instance matches.", err=True)
    if count > len(ranked):
        click.echo(f"{count - len(ranked)} more services: raise --limit.", err=True)
    warn_of(sources)


def _lately(since_s: float) -> tuple[str, str]:
    return f"SPEC-CHANGES/{span(since_s)}", f"READY-CHANGES/{span(since_s)}"
