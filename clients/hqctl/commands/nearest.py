"""Services that are not there, and the names that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from hqctl.output.sources import faults
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


async def tell_unknown_services(client: Client, where: pb.InstanceFilter, sources: Iterable[pb.Source]) -> None:
    """After an answer with nothing in it: say on stderr which services of the filter there are not.

    Only where every source answered and is fresh: a location that is missing may have them.
    """
    from hqclient.client import HqApiError

    if not where.service_id or any(map(faults, sources)):
        return
    try:
        counted = await client.count(by=pb.COUNT_GROUP_SERVICE)
    except HqApiError:
        return  # the question was answered; who may not see all services gets no hint
    if any(map(faults, counted.sources)):
        return
    known = [group.key for group in counted.groups if group.key]
    for name in where.service_id:
        if name not in known:
            click.echo(unknown_service(name, known), err=True)


def unknown_service(name: str, known: Iterable[str]) -> str:
    """A sentence, with the closest of the names that there are."""
    import difflib  # which an answer with something in it does not need

    close = " or ".join(repr(one) for one in difflib.get_close_matches(name, known))
    return f"no service {name!r}: did you mean {close}?" if close else f"no service {name!r}."
