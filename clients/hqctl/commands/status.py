"""status: what is wrong with an installation, since when, why, and what to do next."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hqcli.exits import Exit, exit_of
from hqcli.formats import TEXTS, as_dict, is_data, output_option, print_data
from hqcli.readable import guard_words, plural, seconds_of, size, span
from hqcli.terminal import colour_of, escape_controls, fold, print_table, say, width_of
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.asking.transitions import fetch_transitions
from hqctl.output.findings import Facts, Finding, Reached, findings
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client

T = TypeVar("T")
LATELY_S = 3600.0


@click.command()
@output_option(*TEXTS)
@with_session
def status(session: HqctlSession, output: str) -> None:
    """Show what is wrong, since when, why, and what to do next; then the replicas, the store and the guard.

    Queries each given server: name all replicas. AGE is the longest time for which a replica may
    have missed changes. At a federation gateway: its locations. Exits with 1 if there is a problem (a line with `!`),
    and with 5 if no server responds.
    """

    async def work(client: Client) -> Exit:
        facts = await survey(session, client)
        found = findings(facts, time.time())
        if is_data(output):
            print_data(as_data(facts, found), output)
        else:
            _print(facts, found)
        if not facts.sources():
            return Exit.UNAVAILABLE
        return Exit.REFUSED if any(one.severe for one in found) else Exit.OK

    session.run(work)


async def survey(session: HqctlSession, client: Client) -> Facts:
    """Ask all servers at once; a server that does not answer is a fact, too."""
    facts = Facts(reached=list(await asyncio.gather(*(_reach(session, address) for address in session.servers))))
    if not facts.sources():
        return facts
    answering = [one.address for one in facts.reached if one.sources]
    counted, lists, guard, records, planned, moves = await asyncio.gather(
        _or_error(client.count(by=pb.COUNT_GROUP_SERVICE)),
        asyncio.gather(*(_list_replicas(session, address) for address in answering)),
        _or_error(client.admin.get_guard()),
        _or_error(client.admin.list_quarantine()),
        _or_error(client.admin.list_suspensions()),
        _or_error(fetch_transitions(session)),
    )
    if isinstance(counted, pb.CountInstancesResponse):
        facts.counts = counted.groups
    listed = {address: one for address, one in zip(answering, lists, strict=True) if not isinstance(one, str)}
    if listed:
        first = next(iter(listed.values()))
        facts.replicas, facts.members = first.replicas, first.members
        facts.store_bytes, facts.max_store_bytes = first.store_bytes, first.max_store_bytes
        facts.proofs = {address: one.proof for address, one in listed.items()}
    if isinstance(guard, admin_pb2.GetGuardResponse):
        facts.guard = guard.guard
    facts.records = getattr(records, "records", ())
    facts.suspensions = getattr(planned, "suspensions", ())
    lately = time.time() - LATELY_S
    facts.expiries = [t for t in getattr(moves, "transitions", ()) if not t.ready and t.time.seconds >= lately]
    facts.refused = "" if listed else next((one for one in lists if isinstance(one, str)), "")
    return facts


async def _reach(session: HqctlSession, address: str) -> Reached:
    """Ask one address about itself: a count with no matches is the cheapest request."""
    from hqclient.client import HqApiError

    nothing = pb.InstanceFilter(instance_id=["-"])
    async with session.client((address,)) as client:
        try:
            return Reached(address, tuple((await client.count(nothing)).sources))
        except HqApiError as error:
            if exit_of(error, writing=False) is Exit.NOT_ALLOWED:
                raise  # it does answer
            return Reached(address, error=error.message.rstrip("."))


async def _list_replicas(session: HqctlSession, address: str) -> admin_pb2.ListReplicasResponse | str:
    """Ask one replica about others, the store and its own memory; or return why it does not answer."""
    async with session.client((address,)) as client:
        return await _or_error(client.admin.list_replicas())


async def _or_error(call: Awaitable[T]) -> T | str:
    from hqclient.client import HqApiError

    try:
        return await call
    except HqApiError as error:
        return error.message


def as_data(facts: Facts, found: list[Finding]) -> dict[str, Any]:
    """The facts and findings as data, for programs."""
    return {
        "findings": [{"what": f.what, "next": f.next, "severe": f.severe} for f in found],
        "instances": {"total": facts.total, "ready": facts.ready, "unknown": sum(one.unknown for one in facts.counts)},
        "servers": [
            {"address": r.address, "error": r.error, "sources": [as_dict(s) for s in r.sources]} for r in facts.reached
        ],
        "replicas": [as_dict(one) for one in facts.replicas],
        "members": [as_dict(one) for one in facts.members],
        "storeBytes": facts.store_bytes,
        "maxStoreBytes": facts.max_store_bytes,
        "proofs": {address: as_dict(one) for address, one in facts.proofs.items()},
        "guard": as_dict(facts.guard) if facts.guard is not None else {},
        "quarantine": [as_dict(one) for one in facts.records],
        "suspensions": [as_dict(one) for one in facts.suspensions],
    }


def _print(facts: Facts, found: list[Finding]) -> None:
    problems = [one for one in found if one.severe]
    word = plural(len(problems), "problem").upper() if problems else "no problem"
    told = f"{_name(facts)}: {word}, {facts.ready} of {plural(facts.total, 'instance')} ready"
    if not facts.sources():
        complain(f"no server responds: {', '.join(r.address for r in facts.reached)}")
        told = f"{_name(facts)}: {word}"
    colour = "red" if problems else "green"
    line = f"{told}  ({time.strftime('%Y-%m-%d %H:%M:%S %Z')})"
    click.echo(click.style(line, fg=colour, bold=True) if colour_of(sys.stdout) else line)
    for one in found:
        _print_finding(one)
    click.echo()
    print_table(("SERVER", "REPLICA", "CLUSTER", "ANSWER", "AGE", "VERSION"), list(_servers(facts)))
    for names, rows in (_peers(facts), _members(facts)):
        if rows:
            click.echo()
            print_table(names, rows)
    if facts.refused:
        click.echo("\nFederation gateway: replicas, store and guard belong to each location: ask there.")
    if facts.guard is not None and not facts.guard.holding:  # otherwise it is among the findings
        say(f"\nGuard: {guard_words(facts.guard)}")


def _print_finding(one: Finding) -> None:
    width = width_of(sys.stdout)
    mark = "!" if one.severe else "-"
    shown = click.style(mark, fg="red" if one.severe else "yellow", bold=True) if colour_of(sys.stdout) else mark
    what, *more = fold(one.what, width - 2)
    click.echo(f"{shown} {escape_controls(what)}")
    for line in (*more, *fold(f"next: {one.next}", width - 2)):
        click.echo(f"  {escape_controls(line)}")


def _name(facts: Facts) -> str:
    return ", ".join(dict.fromkeys(s.cluster for s in facts.sources() if s.cluster)) or "HQ"


def _servers(facts: Facts) -> Iterator[list[str]]:
    for one in facts.reached:
        if one.error:
            yield [one.address, "-", "-", "silent", "-", "-"]
        for source in one.sources:
            answer = "silent" if source.error and not source.replica else "stale" if source.stale else "ok"
            late_s = seconds_of(source.staleness)
            age = f"{late_s:.1f}s" if late_s < 60 else span(late_s)
            shown = age if source.HasField("staleness") else "-"
            yield [one.address, source.replica or "-", source.cluster or "-", answer, shown, str(source.version or "-")]


def _peers(facts: Facts) -> tuple[tuple[str, ...], list[list[str]]]:
    asked = {source.replica for source in facts.sources()}
    return ("OTHER-REPLICA", "LAST-SIGN"), [
        [peer.replica, f"{span(seconds_of(peer.silent_for))}"]
        for peer in facts.replicas
        if peer.replica not in asked and seconds_of(peer.silent_for) < LATELY_S
    ]


def _members(facts: Facts) -> tuple[tuple[str, ...], list[list[str]]]:
    return ("STORE-MEMBER", "VERSION", "LEADER", "SIZE", "IN-USE", "ERROR"), [
        [
            member.endpoint,
            member.version or "-",
            "yes" if member.leader else "-",
            *(("-", "-") if member.error else (size(member.db_size_bytes), size(member.db_size_in_use_bytes))),
            member.error or ("full" if member.full else "-"),
        ]
        for member in facts.members
    ]
