"""Warnings about an answer: stale, partial, with old records, unknown services."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from hqcli.readable import plural, seconds_of, span
from hqcli.terminal import warn
from hqctl.asking.session import HqctlSession, WrongCluster
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


def merged_sources(pages: Iterable[Iterable[pb.Source]]) -> list[pb.Source]:
    """The sources of several pages: the latest of each replica."""
    return list({(s.cluster, s.replica): s for page in pages for s in page}.values())


def warn_of(sources: Iterable[pb.Source]) -> None:
    """Print on stderr what is wrong with an answer, one line for each source concerned."""
    for source in sources:
        for text in faults(source):
            warn(text)


def faults(source: pb.Source) -> list[str]:
    """Sentences about what is wrong with a source; none: all is well."""
    name = source.cluster or source.replica or "a source"
    found = []
    if source.error and not source.replica:
        found.append(f"{name} did not respond ({source.error}): its instances are missing here.")
    elif source.error:
        found.append(f"{name}: {source.error}.")
    if source.stale:
        late_s = seconds_of(source.staleness)
        since = f" for {span(late_s)}" if late_s >= 1 else ""
        found.append(f"data of {name} is stale: {source.replica} may have missed changes{since}.")
    if source.quarantined:
        shown = ", ".join(source.quarantined[:3]) + (", …" if len(source.quarantined) > 3 else "")
        count = plural(len(source.quarantined), "instance")
        old = f"{count} shown as last decoded, because the record cannot be decoded: {shown}"
        found.append(f"{name}: {old}. See `hqctl quarantine`.")
    return found


def check_cluster(session: HqctlSession, *sources: pb.Source) -> None:
    """Raises WrongCluster: these sources belong to another cluster than --cluster names."""
    if wrong := not_of([session.cluster], sources):
        raise WrongCluster(wrong)


def not_of(clusters: Iterable[str], sources: Iterable[pb.Source]) -> str:
    """A message if the answer comes from none of the named clusters: a replica answers only for its own."""
    wanted, answered = set(clusters) - {""}, {source.cluster for source in sources} - {""}
    if not wanted or not answered or wanted & answered:
        return ""
    names = ", ".join(sorted(answered)), ", ".join(sorted(wanted))
    return (
        f"this is cluster {names[0]}, not {names[1]}: "
        "choose a server of that cluster, or a federation gateway (--server, --context)."
    )


async def tell_unknown_services(client: Client, where: pb.InstanceFilter, sources: Iterable[pb.Source]) -> None:
    """After an empty answer: print on stderr which services of the filter do not exist.

    Only if every source answered and is fresh: a missing location may have them.
    """
    from hqclient.client import HqApiError

    if not where.service_id or any(map(faults, sources)):
        return
    try:
        counted = await client.count(by=pb.COUNT_GROUP_SERVICE)
    except HqApiError:
        return  # the question was answered; callers who may not see all services get no hint
    if any(map(faults, counted.sources)):
        return
    known = [group.key for group in counted.groups if group.key]
    for name in where.service_id:
        if name not in known:
            click.echo(unknown_service(name, known), err=True)


def unknown_service(name: str, known: Iterable[str]) -> str:
    """A message that suggests the closest existing name."""
    import difflib  # not needed unless an answer is empty

    close = " or ".join(repr(one) for one in difflib.get_close_matches(name, known))
    return f"no service {name!r}: did you mean {close}?" if close else f"no service {name!r}."
