"""Options that name services, shared by activate, rollback and status: by descriptions or by ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from descriptions.description import Description
from descriptions.reading import read_descriptions
from descriptions.shares import Share, shares_of
from hqcli.documents import BadDocument
from nannyctl.session import NannyctlSession, refuse

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Chosen:
    """Services, and where to look for them.

    Attributes:
        installations: addresses by name.
        services: ids.
        expected: ids of described instances by installation and service.
        everywhere: some services were named by id, so each installation may or may not hold them.
    """

    installations: Mapping[str, tuple[str, ...]]
    services: tuple[str, ...]
    expected: Mapping[str, Mapping[str, Sequence[str]]]
    everywhere: bool


def service_options(function: F) -> F:
    """Give a command the options `names` and `services`."""
    files = click.option(
        "-f", "--filename", "names", multiple=True, metavar="FILE", help="Descriptions of the services."
    )
    services = click.option("--service", "services", multiple=True, metavar="SERVICE", help="Ids of the services.")
    return files(services(function))


def described_shares(
    session: NannyctlSession, names: Sequence[str]
) -> tuple[list[Description], dict[str, tuple[str, ...]], dict[str, list[Share]]]:
    """The descriptions, addresses of all installations, and the shares of each; exits if the documents are faulty."""
    try:
        descriptions = read_descriptions(names)
        known = session.known_addresses(*(description.installations for description in descriptions))
        return descriptions, known, shares_of(descriptions, known)
    except BadDocument as fault:
        refuse(fault)


def choose(session: NannyctlSession, names: Sequence[str], services: Sequence[str]) -> Chosen:
    """What the options name; exits if the documents are faulty.

    With descriptions only, these are the installations that hold described instances; with ids, all known ones.
    """
    if not names and not services:
        raise click.UsageError("choose services: -f FILE or --service SERVICE")
    descriptions, known, shares = described_shares(session, names)
    expected: dict[str, dict[str, list[str]]] = {}
    for name, listed in shares.items():
        for share in listed:
            expected.setdefault(name, {}).setdefault(share.description.service, []).extend(share.ids)
    kept = session.selected_addresses(known)
    concerned = {name: servers for name, servers in kept.items() if services or name in expected}
    every = dict.fromkeys([*(description.service for description in descriptions), *services])
    return Chosen(concerned, tuple(every), expected, everywhere=bool(services))
