"""guard, suspend, resume, suspensions: what holds expiries back, and operators' orders for it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, TEXTS, is_data, output_option, print_data, print_items
from hqcli.options import DurationParam
from hqcli.readable import clock_time, guard_words, plural, span, stamp
from hqcli.terminal import print_table, say, warn
from hqctl.asking.options import ordering
from hqctl.asking.session import HqctlSession, with_session
from hqctl.output.sources import check_cluster
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


ORDERS = {
    pb.GUARD_OVERRIDE_KIND_RELEASE: "Released: silent revisions expire, whatever the share",
    pb.GUARD_OVERRIDE_KIND_FORCE: "Forced: all expiries are held",
}


@click.group()
def guard() -> None:
    """Show, release or force the guard, which holds back expiries.

    When many revisions fall silent at once, HQ or the network may be the cause, and HQ waits before they expire.
    """


@guard.command(short_help="Show what the guard does, and why.")
@output_option(*TEXTS)
@with_session
def status(session: HqctlSession, output: str) -> None:
    """Show what the guard does, as the answering replica sees it."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.get_guard()
        check_cluster(session, answer.source)
        if is_data(output):
            print_data(answer.guard, output)
        else:
            print_guard(answer.guard)
        return Exit.OK

    session.run(work)


def _order(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command an order to the guard, with the options that all of them take."""
    duration = click.option(
        "--for", "span_s", type=DurationParam(1), help="Duration, at most 24h. Default: the liveness timeout."
    )
    return duration(ordering(command))


def _give(
    session: HqctlSession,
    order: Callable[[Client], Awaitable[admin_pb2.ReleaseGuardResponse | admin_pb2.ForceGuardResponse]],
) -> None:
    async def work(client: Client) -> Exit:
        print_order((await order(client)).guard)
        return Exit.OK

    session.run(work, writing=True, look="hqctl guard status")


@guard.command(short_help="Let silent revisions expire for a while.")
@_order
@with_session
def release(session: HqctlSession, span_s: float | None, reason: str, by: str) -> None:
    """Let silent revisions expire for a while, whatever their share.

    It replaces a force order, and the guard holds nothing back until it is over: to return to normal at once, give
    --for 1s.
    """
    _give(session, lambda client: client.admin.release_guard(by=by, reason=reason, duration_s=span_s))


@guard.command(short_help="Hold all expiries for a while.")
@_order
@with_session
def force(session: HqctlSession, span_s: float | None, reason: str, by: str) -> None:
    """Hold all expiries for a while: nothing is marked not ready for silence."""
    _give(session, lambda client: client.admin.force_guard(by=by, reason=reason, duration_s=span_s))


def print_guard(state: pb.GuardState) -> None:
    """Print the state of the guard as a few lines."""
    words = guard_words(state)
    say(words[:1].upper() + words[1:])
    if state.waiting:
        click.echo(f"{plural(state.waiting, 'expiry')} waiting; held since {clock_time(state.since)}.")
    print_order(state)


def print_order(state: pb.GuardState) -> None:
    """Print the operator's order in force, if there is one. The guard follows it from its next sweep on."""
    if state.override.kind in ORDERS:
        order = state.override
        by = f"by {order.by or 'somebody'} at {clock_time(order.since)}: {order.reason or 'without a reason'}"
        say(f"{ORDERS[order.kind]}, until {clock_time(order.until)} ({by}).")
        if order.kind == pb.GUARD_OVERRIDE_KIND_FORCE:
            click.echo("To end it early: `hqctl guard release --for 1s --reason TEXT`.")


@click.command()
@click.argument("node")
@click.option("--for", "span_s", type=DurationParam(), required=True, help="Duration, at most 7d, e.g. 2h.")
@ordering
@with_session
def suspend(session: HqctlSession, node: str, span_s: float, reason: str, by: str) -> None:
    """Suspend expiry on NODE for a while, during planned work."""

    async def work(client: Client) -> Exit:
        before = await _node_suspensions(client, node)
        answer = await client.admin.suspend_node(node, duration_s=span_s, by=by, reason=reason)
        until = clock_time(answer.suspension.until)
        click.echo(f"{node} is suspended until {until}. To end it early: `hqctl resume {node}`.")
        for one in before:
            say(f"This replaces the suspension until {clock_time(one.until)} by {one.by}: {one.reason}.")
        await _warn_of_a_node_nobody_is_on(client, node)
        return Exit.OK

    session.run(work, writing=True, look="hqctl suspensions")


@click.command()
@click.argument("node")
@with_session
def resume(session: HqctlSession, node: str) -> None:
    """End planned work on NODE early."""

    async def work(client: Client) -> Exit:
        await client.admin.resume_node(node)
        click.echo(f"{node} is no longer suspended.")
        return Exit.OK

    session.run(work, writing=True, look="hqctl suspensions")


@click.command()
@output_option(*LISTS)
@with_session
def suspensions(session: HqctlSession, output: str) -> None:
    """List suspended nodes."""

    async def work(client: Client) -> Exit:
        answer = await client.admin.list_suspensions()
        check_cluster(session, answer.source)
        if is_data(output):
            print_items(answer.suspensions, [answer.source], output)
        elif answer.suspensions:
            print_table(("NODE", "UNTIL", "LEFT", "BY", "REASON"), [_row(one) for one in answer.suspensions])
        else:
            click.echo("No node is under planned work.", err=True)
        return Exit.OK

    session.run(work)


async def _node_suspensions(client: Client, node: str) -> list[admin_pb2.Suspension]:
    """The suspension of a node, if there is one. Not being able to ask is no error."""
    from hqclient.client import HqApiError

    try:
        return [one for one in (await client.admin.list_suspensions()).suspensions if one.node_name == node]
    except HqApiError:
        return []


async def _warn_of_a_node_nobody_is_on(client: Client, node: str) -> None:
    """Warn of a name that may be mistyped and would protect nothing. If HQ cannot be asked, that is no error."""
    from hqclient.client import HqApiError
    from hqpb.v1 import service_pb2

    try:
        counted = await client.count(service_pb2.InstanceFilter(node_name=[node]))
    except HqApiError:
        return
    if not any(group.total for group in counted.groups):
        warn(f"no instance is on {node}: check the name with `hqctl count --by node`.")


def _row(suspension: admin_pb2.Suspension) -> list[str]:
    left = span(suspension.until.seconds - time.time())
    return [suspension.node_name, stamp(suspension.until), left, suspension.by or "-", suspension.reason or "-"]
