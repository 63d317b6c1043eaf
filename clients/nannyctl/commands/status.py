"""status: how far the agents got."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit as NannyExit
from hqcli.formats import output_option, print_json
from hqcli.options import DurationParam
from hqcli.terminal import print_table
from nannyctl.commands.choosing import choose, service_options
from nannyctl.exits import worst
from nannyctl.plans.progress import RevisionCount, Rollout, Slow, rollout
from nannyctl.session import InstallationAnswer, NannyctlSession, finish, tell_away, warn, with_session

if TYPE_CHECKING:
    from hqclient.client import Client
    from hqpb.v1 import instance_pb2

SHOWN = 10


@click.command()
@service_options
@click.option("--wait", "wait_s", type=DurationParam(), metavar="SPAN", help="Wait this long for the agents, e.g. 5m.")
@click.option("--all", "every", is_flag=True, help="List every slow instance.")
@output_option("text", "json")
@with_session
def status(
    session: NannyctlSession,
    names: tuple[str, ...],
    services: tuple[str, ...],
    wait_s: float | None,
    every: bool,
    output: str,
) -> None:
    """Show the progress of the services' agents: per revision, and the slow ones by name.

    Exits with 0 when every agent is done.
    """
    chosen = choose(session, names, services)

    async def work() -> NannyExit:
        partial: dict[str, list[str]] = {}  # by installation that is a gateway: its missing locations

        async def one(name: str, client: Client) -> list[Rollout]:
            found, missing = await _rollouts(name, client, chosen.services, chosen.expected.get(name, {}), wait_s)
            if missing:
                partial[name] = missing
                warn(f"{name}: {', '.join(missing)} did not respond: their instances are not counted.")
            return found

        asked = await session.each(chosen.installations, one)
        asked = [_without_the_absent(one) for one in asked] if chosen.everywhere else asked
        if output == "json":
            print_json({"installations": [_as_dict(one, partial.get(one.installation, [])) for one in asked]})
        else:
            for one_of_them in asked:
                _print(one_of_them, every)
        return _exit(asked, partial)

    finish(work())


async def _rollouts(
    name: str, client: Client, services: Sequence[str], expected: Mapping[str, Sequence[str]], wait_s: float | None
) -> tuple[list[Rollout], list[str]]:
    """The state now, or as soon as all are done or the time is up; and which locations are missing.

    Raises HqApiError: HQ cannot be asked, or is lost while waiting.
    """
    from nannyctl.following import instances_as_they_change, instances_now

    shown = await instances_now(client, services)
    found, missing = _judge(shown.instances.values(), services, expected), shown.missing
    if not wait_s or (not missing and all(one.is_done for one in found)):
        return found, missing
    try:
        async with asyncio.timeout(wait_s), aclosing(instances_as_they_change(client, services)) as states:
            async for state in states:
                missing = []
                before, found = found, _judge(state.instances.values(), services, expected)
                if all(one.is_done for one in found):
                    break  # reported with the final result
                _tell_news(name, before, found)
    except TimeoutError:
        # The silence may have been HQ's own: ask once more, for the current state or to find that HQ is lost.
        shown = await instances_now(client, services)
        return _judge(shown.instances.values(), services, expected), shown.missing
    return found, missing


def _tell_news(name: str, before: Sequence[Rollout], now: Sequence[Rollout]) -> None:
    """Print progress for those who wait."""
    for old, new in zip(before, now, strict=True):
        if old.words() != new.words():
            click.echo(f"{name}: {new.service}: {new.words()}", err=True)


def _judge(
    instances: Iterable[instance_pb2.Instance], services: Sequence[str], expected: Mapping[str, Sequence[str]]
) -> list[Rollout]:
    by_service: dict[str, list[Any]] = {service: [] for service in services}
    for instance in instances:
        by_service[instance.meta.service_id].append(instance)
    return [rollout(service, of_it, expected.get(service, ())) for service, of_it in by_service.items()]


def _without_the_absent(asked: InstallationAnswer[list[Rollout]]) -> InstallationAnswer[list[Rollout]]:
    """Drop services that were named by id where an installation does not hold them."""
    if asked.answer is None:
        return asked
    return InstallationAnswer(asked.installation, [one for one in asked.answer if one.instances])


def _exit(asked: Sequence[InstallationAnswer[list[Rollout]]], partial: Mapping[str, object]) -> NannyExit:
    rollouts = [one for each in asked for one in each.answer or ()]
    if all(each.answer is not None for each in asked) and not rollouts:
        return NannyExit.NOT_YET
    late = bool(partial) or any(not one.is_done for one in rollouts)
    return worst([*([NannyExit.NOT_YET] if late else []), *(each.exit for each in asked)])


def _print(asked: InstallationAnswer[list[Rollout]], every: bool) -> None:
    if asked.answer is None:
        sys.stdout.flush()
        tell_away(asked)
        return
    for one in asked.answer:
        click.echo(f"{asked.installation}: {one.service}: {one.words()}")
        if one.counts:
            names = ("REVISION", "TARGET", "INSTANCES", "INSTALLED", "READY", "AS DESIRED")
            print_table(names, [_row(count) for count in one.counts.values()])
        shown = one.slow if every else one.slow[:SHOWN]
        for slow in shown:
            click.echo(f"  {_words(slow)}")
        if len(shown) < len(one.slow):
            click.echo(f"  ... and {len(one.slow) - len(shown)} more (--all names them)")
    if not asked.answer:
        click.echo(f"{asked.installation}: has no instance of these services")


def _row(count: RevisionCount) -> list[str]:
    targets = {"READY": count.wanted_ready, "INSTALLED": count.wanted_installed}
    there = [(name, number) for name, number in targets.items() if number]
    wanted = there[0][0] if len(there) == 1 else ", ".join(f"{number} {name}" for name, number in there)
    figures = (count.wanted, count.installed, count.ready, count.reached)
    return [count.revision, wanted, *(str(figure) for figure in figures)]


def _words(slow: Slow) -> str:
    where = f" on {slow.node}" if slow.node else ""
    return f"{slow.instance}{where}: {f'{slow.revision}: ' if slow.revision else ''}{slow.why}"


def _as_dict(asked: InstallationAnswer[list[Rollout]], missing: Sequence[str]) -> dict[str, Any]:
    services = [
        {
            "service": one.service,
            "done": one.is_done,
            "instances": one.instances,
            "revisions": [_count_as_dict(count) for count in one.counts.values()],
            "slow": [{"instance": s.instance, "node": s.node, "revision": s.revision, "why": s.why} for s in one.slow],
        }
        for one in asked.answer or ()
    ]
    return {"name": asked.installation, "error": asked.error or None, "missing": missing, "services": services}


def _count_as_dict(count: RevisionCount) -> dict[str, Any]:
    return {
        "revision": count.revision,
        "wantedReady": count.wanted_ready,
        "wantedInstalled": count.wanted_installed,
        "installed": count.installed,
        "ready": count.ready,
        "asWanted": count.reached,
    }
