"""why: the story of an instance's readiness."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from clients.hqctl.exits import Exit
from clients.hqctl.formats import output_option, print_json
from clients.hqctl.session import Session, colour_of, connected
from clients.hqctl.sources import warn_of
from clients.hqctl.words import age, clock_time, plural, seconds_of, span, target, truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client

READY_WORDS = {"yes": "is READY", "no": "is NOT READY", "unknown": "has not been reported yet"}
READY_COLOURS = {"yes": "green", "no": "red", "unknown": "yellow"}


@click.command()
@click.argument("instance_id", metavar="INSTANCE")
@output_option("text", "json")
@connected
def why(session: Session, instance_id: str, output: str) -> None:
    """Tell why an instance is ready or not: last reports, deadlines, receipts, the guard.

    It is the view of one replica, on its own clock.
    """

    async def work(client: Client) -> Exit:
        answer = await client.explain(instance_id)
        if output == "json":
            print_json(answer)
        else:
            _print(answer)
        warn_of(answer.sources)
        return Exit.OK

    session.run(work)


def story(answer: pb.ExplainInstanceResponse, now_s: float) -> Iterator[str]:
    """Lines of text; the indent of a line says what it belongs to."""
    yield from _head(answer, now_s)
    for revision in answer.revision:
        yield ""
        yield from _revision(revision, now_s)
    if answer.guard.verdict or answer.guard.holding:
        yield ""
        yield f"Guard: {guard_words(answer.guard)}"


def guard_words(guard: pb.GuardState) -> str:
    """What the guard does, in one or two sentences."""
    doing = "holding flips back" if guard.holding else "not holding"
    until = f" until {clock_time(guard.until)} at the latest" if guard.holding and guard.until.seconds else ""
    nodes = plural(guard.nodes, "node")
    counted = f"{guard.silent} of {plural(guard.expected, 'revision')} silent, on {nodes}"
    verdict = f" {guard.verdict.rstrip('.')}." if guard.verdict and guard.holding else ""
    return f"{doing}{until} ({counted}).{verdict}"


def _head(answer: pb.ExplainInstanceResponse, now_s: float) -> Iterator[str]:
    meta, ready = answer.meta, answer.ready
    known = ready.status and ready.last_transition_time.seconds
    since = f" since {clock_time(ready.last_transition_time)}" if known else ""
    ago = f" ({age(ready.last_transition_time, now_s)} ago)" if since else ""
    yield f"{meta.id} {READY_WORDS[truth(ready)]}{since}{ago}."
    if answer.summary:
        yield f"  {answer.summary}"
    service = f"service {meta.service_id}, " if meta.service_id else ""
    where = f"node {answer.node_name}" if answer.node_name else "on no node yet"
    yield f"  {service}{where}, version {meta.version}, status version {meta.status_version}"
    if answer.node_suspended_until.seconds:
        until = clock_time(answer.node_suspended_until)
        yield f"  Planned work on {answer.node_name} until {until}: nothing there is called silent."


def _revision(revision: pb.RevisionExplanation, now_s: float) -> Iterator[str]:
    wanted = f"wanted {target(revision.target)}" if revision.target else "not in the spec"
    yield f"Revision {revision.id}, {wanted}: {_condition('ready', revision.ready, now_s)}."
    if revision.summary:
        yield f"  {revision.summary}"
    if truth(revision.installed) != "yes" and revision.last_heartbeat_time.seconds:
        yield f"  {_condition('installed', revision.installed, now_s)}"
    if revision.ready.message and not revision.ready.HasField("receipt"):
        yield f"  It said: {revision.ready.message}"
    yield f"  last report   {_last_report(revision, now_s)}"
    yield f"  deadline      {_deadline(revision)}"
    if revision.postponed_because:
        yield f"  postponed     {revision.postponed_because}"
    if revision.ready.HasField("receipt"):
        yield from _receipt(revision.ready.receipt)


def _condition(word: str, condition: instance_pb2.Condition, now_s: float) -> str:
    held = {"yes": word, "no": f"not {word}"}.get(truth(condition), f"{word} unknown")
    reason = f" ({condition.reason})" if condition.reason else ""
    since = f" for {age(condition.last_transition_time, now_s)}" if condition.last_transition_time.seconds else ""
    return f"{held}{reason}{since}"


def _last_report(revision: pb.RevisionExplanation, now_s: float) -> str:
    if not revision.last_heartbeat_time.seconds:
        return "never"
    heard_by = f" by {revision.heard_by}" if revision.heard_by else ""
    when = clock_time(revision.last_heartbeat_time)
    ago = age(revision.last_heartbeat_time, now_s)
    if revision.HasField("silent_for"):
        ago = span(seconds_of(revision.silent_for))
    return f"{ago} ago, at {when}, heard{heard_by or ' before this replica started'}"


def _deadline(revision: pb.RevisionExplanation) -> str:
    if not revision.HasField("deadline_in"):
        return "none runs"
    left_s = seconds_of(revision.deadline_in)
    return f"in {span(left_s)}" if left_s >= 0 else f"passed {span(-left_s)} ago"


def _receipt(receipt: instance_pb2.Receipt) -> Iterator[str]:
    if receipt.recovered_from:
        yield f"  receipt       a report ended what had been decided before: {receipt.recovered_from}"
        return
    heard = clock_time(receipt.last_heartbeat_time)
    heard_by = f" by {receipt.heard_by}" if receipt.heard_by else ""
    silence = span(seconds_of(receipt.silence))
    decided = f"{receipt.decided_by} decided it at version {receipt.decided_at_version}"
    yield f"  receipt       {decided}, after {silence} of silence; heard last {heard}{heard_by}"
    if receipt.guard_verdict:
        yield f"  guard then    {receipt.guard_verdict}"


def _print(answer: pb.ExplainInstanceResponse) -> None:
    coloured = colour_of(sys.stdout)
    width = min(120, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 10_000
    for number, line in enumerate(story(answer, time.time())):
        colour = READY_COLOURS[truth(answer.ready)] if number == 0 else None
        for part in wrapped(line, width):
            click.echo(click.style(part, fg=colour, bold=colour is not None) if coloured and colour else part)


def wrapped(line: str, width: int) -> list[str]:
    """A line folded to a width, its rest under the text it belongs to."""
    indent = len(line) - len(line.lstrip())
    label = line[indent:].partition("   ")
    hang = indent + (14 if label[1] else 0)
    return textwrap.wrap(line, width, subsequent_indent=" " * hang, break_long_words=False) or [""]
