"""report: play an agent by hand."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqcli.options import DurationParam
from hqcli.readable import seconds_of, span
from hqcli.terminal import warn
from hqctl.asking.failures import sentence
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.output.sources import check_cluster
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client, HqApiError

RETRY_S = 5.0
BY_HAND = "ReportedByHand"


@dataclass(slots=True)
class ManualReporter:
    """One incarnation of an agent, played by hand."""

    client: Client
    instance_id: str
    node: str
    uid: int
    status: instance_pb2.RevisionStatus

    async def report(self) -> pb.ReportStatusResponse:
        """Report the status once more."""
        self.status.sequence += 1
        return await self.client.report(self.instance_id, self.status, uid=self.uid, node=self.node)


@click.command()
@click.argument("instance_id", metavar="INSTANCE")
@click.argument("revision_id", metavar="REVISION")
@click.option("--ready/--not-ready", default=None, help="Whether the revision is running and can serve.")
@click.option(
    "--installed/--not-installed", default=True, help="Whether the revision is installed. Default: installed."
)
@click.option("--reason", default=BY_HAND, show_default=True, help="Reason, one word in CamelCase.")
@click.option("--message", default="", help="Message for people.")
@click.option("--every", metavar="SPAN", help="Keep reporting: 3m, 30s, or `auto` for HQ's interval.")
@click.option("--node", help="Node of the reporter. Default: the instance's node.")
@with_session
def report(
    session: HqctlSession,
    instance_id: str,
    revision_id: str,
    ready: bool | None,
    installed: bool,
    reason: str,
    message: str,
    every: str | None,
    node: str | None,
) -> None:
    """Report the status of a revision as its agent would.

    This takes over the revision: HQ refuses the reports of its real agent until that agent is restarted. If that
    agent is instancectl, it also stops the instance's processes at once, unless it runs with --when-fenced keep.
    Without --every it is a single report, and a ready revision expires unless another one follows.
    """
    if ready is None:
        raise click.UsageError("give --ready or --not-ready")
    every_s = _every(every)
    status = instance_pb2.RevisionStatus(
        id=revision_id,
        # The reason belongs to READY; also to INSTALLED if both have the same value.
        installed=_condition(installed, *((reason, message) if installed == ready else (BY_HAND, ""))),
        ready=_condition(ready, reason, message),
    )

    async def work(client: Client) -> Exit:
        reporter, begun = await _begin(session, client, instance_id, node, status)
        words = ", ".join(("installed" if installed else "not installed", "ready" if ready else "not ready"))
        click.echo(f"Reporting {instance_id} {revision_id} from {reporter.node} as {words}.")
        answer = await reporter.report()
        _print_acceptance(answer)
        if every_s is None:
            if ready:
                timeout = span(seconds_of(begun.liveness_timeout))
                click.echo(f"That was a single report: without another one it expires after {timeout}. See --every.")
            return Exit.OK
        timeout_s = seconds_of(begun.liveness_timeout)
        if ready and every_s > timeout_s:
            warn(
                f"--every {every} is longer than the liveness timeout ({span(timeout_s)}): it expires between reports."
            )
        return await _go_on(reporter, every_s, seconds_of(answer.next_report_in))

    session.run(work, writing=True)


def _every(text: str | None) -> float | None:
    """Seconds between reports; 0: as HQ asks; None: one report only."""
    if text is None or text == "auto":
        return None if text is None else 0.0
    try:
        return DurationParam(1).convert(text, None, None)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, param_hint="--every") from None


def _condition(holds: bool, reason: str, message: str) -> instance_pb2.Condition:
    status = instance_pb2.CONDITION_STATUS_TRUE if holds else instance_pb2.CONDITION_STATUS_FALSE
    condition = instance_pb2.Condition(status=status, reason=reason, message=message)
    condition.last_transition_time.GetCurrentTime()
    return condition


async def _begin(
    session: HqctlSession, client: Client, instance_id: str, node: str | None, status: instance_pb2.RevisionStatus
) -> tuple[ManualReporter, pb.BeginReportingResponse]:
    answer = await client.get(instance_id, fields=("meta", "spec.node_name"))
    check_cluster(session, *answer.sources)
    found = answer.instance
    node = node or found.spec.node_name
    if not node:
        raise click.UsageError(f"{instance_id} has no node yet: a scheduler must place it first (spec.node_name)")
    begun = await client.begin_reporting(instance_id, status.id, node=node)
    status.incarnation = begun.incarnation
    status.spec_version = found.meta.version
    return ManualReporter(client, instance_id, node, begun.uid, status), begun


async def _go_on(reporter: ManualReporter, every_s: float, next_s: float) -> Exit:
    """Keep reporting until HQ says stop or somebody presses Ctrl-C."""
    from hqclient.client import HqApiError

    while True:
        await asyncio.sleep(every_s or next_s or 60.0)
        try:
            answer = await reporter.report()
        except HqApiError as error:
            if _is_final(error):
                raise
            complain(f"{sentence(error, writing=False)} Continuing.")
            next_s = RETRY_S
            continue
        next_s = seconds_of(answer.next_report_in)
        _print_acceptance(answer)


def _is_final(error: HqApiError) -> bool:
    return error.from_hq and error.retry_delay_s is None and not error.outcome_unknown


def _print_acceptance(answer: pb.ReportStatusResponse) -> None:
    asked = span(seconds_of(answer.next_report_in))
    click.echo(f"{time.strftime('%H:%M:%S')} accepted; HQ asks for the next report in {asked}.")
