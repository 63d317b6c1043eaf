"""revision: the single revisions of an instance."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data, print_items, print_yaml
from hqcli.readable import age, target, truth
from hqcli.terminal import print_table
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.manifests.filenames import revision_or_exit
from hqctl.output.sources import check_cluster, warn_of
from hqpb.v1 import instance_pb2

if TYPE_CHECKING:
    from hqclient.client import Client

NAMES = ("ID", "TARGET", "INSTALLED", "READY", "REASON", "SINCE", "HEARTBEAT", "CONTAINERS", "SECRETS")


@click.group()
def revision() -> None:
    """Show, add, replace, remove and activate single revisions of an instance."""


@revision.command(short_help="Show the revisions of an instance, desired and actual.")
@click.argument("instance_id", metavar="INSTANCE")
@click.argument("revision_id", metavar="[REVISION]", default="")
@output_option("table", *TEXTS[1:])
@with_session
def show(session: HqctlSession, instance_id: str, revision_id: str, output: str) -> None:
    """Show the revisions of an instance, desired and actual; of one, `-o yaml` prints what `put` takes.

    SINCE is the time since the last change of READY, HEARTBEAT since the last report.
    """

    async def work(client: Client) -> Exit:
        answer = await client.get(instance_id)
        check_cluster(session, *answer.sources)
        chosen = [r for r in answer.instance.spec.revision if revision_id in ("", r.id)]
        if revision_id and not chosen:
            complain(f"instance {instance_id} has no revision {revision_id}; it has {_names(answer.instance)}.")
            return Exit.NOT_FOUND
        if output == "yaml":
            print_yaml(chosen)
        elif is_data(output) and revision_id:
            print_data(chosen[0], output)
        elif is_data(output):
            print_items(chosen, answer.sources, output)
        else:
            print_table(NAMES, [_row(answer.instance, r, time.time()) for r in chosen])
        warn_of(answer.sources)
        return Exit.OK

    session.run(work)


@revision.command(short_help="Add a revision, or replace the one of the same id.")
@click.argument("instance_id", metavar="INSTANCE")
@click.option("-f", "--filename", "name", required=True, metavar="FILE", help="One revision, YAML or JSON; - is stdin.")
@click.option("--version", type=click.IntRange(1), help="Only if the instance is at this version.")
@click.option("--clear-secrets", is_flag=True, help="Remove the secrets that FILE omits. Default: keep them.")
@click.option("--dry-run", is_flag=True, help="Validate by HQ without storing.")
@with_session
def put(
    session: HqctlSession, instance_id: str, name: str, version: int | None, clear_secrets: bool, dry_run: bool
) -> None:
    """Add a revision to an instance, or replace the one of the same id.

    If it is READY, the revision that was READY so far becomes INSTALLED.
    """
    place, wanted = revision_or_exit(name)

    async def work(client: Client) -> Exit:
        from hqclient.client import HqApiError

        try:
            answer = await client.put_revision(
                instance_id, wanted, version=version or 0, clear_secrets=clear_secrets, validate_only=dry_run
            )
        except HqApiError as error:
            is_of_file = any(fault.field.startswith("revision") for fault in error.violations)
            return session.tell(error, writing=not dry_run, subject=place if is_of_file else "")
        at = "dry run" if dry_run else f"version {answer.instance.meta.version}"
        click.echo(f"{instance_id} has {wanted.id}, wanted {target(wanted.target)} ({at})")
        return Exit.OK

    session.run(work, writing=not dry_run)


@revision.command()
@click.argument("instance_id", metavar="INSTANCE")
@click.argument("revision_id", metavar="REVISION")
@click.option("--version", type=click.IntRange(1), help="Only if the instance is at this version.")
@with_session
def delete(session: HqctlSession, instance_id: str, revision_id: str, version: int | None) -> None:
    """Remove a revision with its status and secrets."""

    async def work(client: Client) -> Exit:
        answer = await client.delete_revision(instance_id, revision_id, version=version or 0)
        click.echo(f"{instance_id} no longer has {revision_id} (version {answer.instance.meta.version})")
        return Exit.OK

    session.run(work, writing=True)


@revision.command(short_help="Make a revision the desired READY one.")
@click.argument("instance_id", metavar="INSTANCE")
@click.argument("revision_id", metavar="REVISION")
@with_session
def activate(session: HqctlSession, instance_id: str, revision_id: str) -> None:
    """Make a revision the desired READY one; the previous one stays INSTALLED, for a roll-back.

    To roll back, activate the older one.
    """

    async def work(client: Client) -> Exit:
        instance = (await client.get(instance_id)).instance
        wanted = next((r for r in instance.spec.revision if r.id == revision_id), None)
        if wanted is None:
            complain(f"instance {instance_id} has no revision {revision_id}; it has {_names(instance)}.")
            return Exit.NOT_FOUND
        wanted.target = instance_pb2.REVISION_TARGET_READY
        wanted.ClearField("secret_count")
        answer = await client.put_revision(instance_id, wanted, version=instance.meta.version)
        click.echo(f"{instance_id} wants {revision_id} READY (version {answer.instance.meta.version})")
        return Exit.OK

    session.run(work, writing=True)


def _names(instance: instance_pb2.Instance) -> str:
    return ", ".join(r.id for r in instance.spec.revision) or "none"


def _row(instance: instance_pb2.Instance, wanted: instance_pb2.InstanceRevision, now_s: float) -> list[str]:
    status: Any = next((s for s in instance.status.revision if s.id == wanted.id), instance_pb2.RevisionStatus())
    heard = instance.status.heartbeat
    containers = ",".join(f"{c.name}={'ready' if c.ready else 'not-ready'}" for c in status.container)
    return [
        wanted.id,
        target(wanted.target),
        truth(status.installed),
        truth(status.ready),
        status.ready.reason or "-",
        age(status.ready.last_transition_time, now_s),
        age(heard[wanted.id], now_s) if wanted.id in heard else "-",
        containers or ",".join(c.name for c in wanted.container) or "-",
        str(wanted.secret_count),
    ]
