"""history: what was known of instances, and when, as the recorder has it."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import Any, Final

import click

from historypb.v1 import history_pb2 as pb
from hqcli.controllers import controller_options
from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data
from hqcli.readable import parse_span, span
from hqcli.recorder import RECORDER
from hqcli.terminal import print_table, warn
from hqctl.asking.cms import ControllerProcesses
from hqctl.output import rows

_WORDS: Final = {
    pb.EVENT_KIND_CREATED: "created",
    pb.EVENT_KIND_DELETED: "deleted",
    pb.EVENT_KIND_READY: "ready",
    pb.EVENT_KIND_NOT_READY: "not ready",
    pb.EVENT_KIND_CHANGED: "changed",
    pb.EVENT_KIND_GAP: "nothing heard",
}
_OLD_S: Final = 15.0  # HQ says at least every 5 s that nothing was missed
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


class MomentParam(click.ParamType[float]):
    """A time, in seconds since 1970: `2h` (ago), `03:10` (the last one, local time), or ISO 8601."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        if clock := _CLOCK.fullmatch(value):
            hour, minute, second = (int(part or 0) for part in clock.groups())
            now = datetime.now().astimezone()
            if hour < 24 and minute < 60 and second < 60:
                then = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
                return (then if then <= now else then - timedelta(days=1)).timestamp()
        try:
            return time.time() - parse_span(value)
        except ValueError:
            pass
        try:
            return datetime.fromisoformat(value).astimezone().timestamp()
        except ValueError:
            self.fail(f"{value!r} is no time: write 2h (ago), 03:10, or 2026-01-31T03:10", param, ctx)


class _Recorders(ControllerProcesses):
    """Processes of the recorder."""

    controller = RECORDER


at_recorder = controller_options(RECORDER, _Recorders)


@click.group()
@at_recorder
def history(_: _Recorders) -> None:
    """Show what was known of instances, and when.

    The recorder (`hq-recorder serve`) keeps it. See docs/history.md.
    """


@history.command(short_help="Show what happened, latest first.")
@click.argument("service", default="")
@click.option("--instance", default="", metavar="ID", help="Of this instance only.")
@click.option("--node", default="", help="On this node only.")
@click.option("--since", type=MomentParam(), default="1h", help="From then on: 2h (ago), 03:10, or ISO 8601.")
@click.option("--until", type=MomentParam(), default=None, help="Before then. Default: now.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, help="At most so many.")
@output_option(*TEXTS)
@at_recorder
def events(
    recorder: _Recorders,
    service: str,
    instance: str,
    node: str,
    since: float,
    until: float | None,
    limit: int,
    output: str,
) -> None:
    """Show what happened to instances of SERVICE, or of all. Gaps in what is known are shown as such."""
    request = pb.ListEventsRequest(service_id=service, instance_id=instance, node=node, page_size=limit)
    request.since.FromMilliseconds(round(since * 1_000))
    if until is not None:
        request.until.FromMilliseconds(round(until * 1_000))

    async def work() -> Exit:
        answer = await recorder.call("ListEvents", request)
        if is_data(output):
            print_data(answer, output)
        else:
            print_table(("TIME", "WHAT", "INSTANCE", "SERVICE", "NODE", "WHY"), [_row(one) for one in answer.event])
            if answer.next_page_token:
                warn(f"older ones are left out: give --until, or --limit above {limit}")
        return Exit.OK

    recorder.run(work())


@history.command(short_help="List instances as they were known at a time.")
@click.argument("service", default="")
@click.option("--at", "when", type=MomentParam(), required=True, help="Then: 2h (ago), 03:10, or ISO 8601.")
@click.option("--instance", default="", metavar="ID", help="This instance only.")
@click.option("--node", default="", help="On this node only.")
@output_option(*TEXTS)
@at_recorder
def find(recorder: _Recorders, service: str, when: float, instance: str, node: str, output: str) -> None:
    """List instances of SERVICE, or of all, as they were known at a time; a warning says how well they were."""
    request = pb.FindInstancesAtRequest(service_id=service, instance_id=instance, node=node)
    request.time.FromMilliseconds(round(when * 1_000))

    async def work() -> Exit:
        _print_then(await _find_all(recorder, request), output)
        return Exit.OK

    recorder.run(work())


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="NAME...")
@click.option("--at", "when", type=MomentParam(), required=True, help="Then: 2h (ago), 03:10, or ISO 8601.")
@output_option(*TEXTS)
@at_recorder
def get(recorder: _Recorders, ids: tuple[str, ...], when: float, output: str) -> None:
    """Show instances by id as they were known at a time."""

    async def work() -> Exit:
        whole, missing = pb.FindInstancesAtResponse(), []
        for instance_id in ids:
            request = pb.FindInstancesAtRequest(instance_id=instance_id)
            request.time.FromMilliseconds(round(when * 1_000))
            answer = await _find_all(recorder, request)
            missing += [] if answer.instance else [instance_id]
            whole = _union(whole, answer)
        _print_then(whole, output)
        for instance_id in missing:
            warn(f"instance {instance_id} was not known at {_local(round(when * 1_000))}")
        return Exit.NOT_FOUND if missing else Exit.OK

    recorder.run(work())


def _union(one: pb.FindInstancesAtResponse, other: pb.FindInstancesAtResponse) -> pb.FindInstancesAtResponse:
    """The instances of both answers, with the greater age, and a gap if either has one."""
    age = max(one.age, other.age, key=lambda age: age.ToNanoseconds())
    return pb.FindInstancesAtResponse(instance=[*one.instance, *other.instance], age=age, gap=one.gap or other.gap)


async def _find_all(recorder: _Recorders, request: pb.FindInstancesAtRequest) -> pb.FindInstancesAtResponse:
    """All pages as one. Raises HqApiError, BadCredentials."""
    whole: pb.FindInstancesAtResponse = await recorder.call("FindInstancesAt", request)
    while whole.next_page_token:
        request.page_token = whole.next_page_token
        answer = await recorder.call("FindInstancesAt", request)
        whole.instance.extend(answer.instance)
        whole.next_page_token = answer.next_page_token
    return whole


def _print_then(whole: pb.FindInstancesAtResponse, output: str) -> None:
    if is_data(output):
        print_data(whole, output)
    elif whole.instance:
        names = ("INSTANCE", "SERVICE", "NODE", "READY", "REVISION")
        print_table(names, [_instance_row(one) for one in whole.instance])
    age_s = whole.age.ToMilliseconds() / 1_000
    if whole.gap or age_s > _OLD_S:
        known = f"as known {span(age_s)} before: " if age_s else ""
        warn(f"{known}{whole.gap or 'nothing was recorded after it'}")


@history.command(short_help="Show what CMS, Nanny and Wall-E decided and were ordered, latest first.")
@click.argument("subject", default="")
@click.option("--of", "server", type=click.Choice(["cms", "nanny", "walle"]), default=None, help="Of this server only.")
@click.option("--service", default="", help="What touched this service only.")
@click.option("--node", default="", help="What touched this node only.")
@click.option("--since", type=MomentParam(), default="1h", help="From then on: 2h (ago), 03:10, or ISO 8601.")
@click.option("--until", type=MomentParam(), default=None, help="Before then. Default: now.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, help="At most so many.")
@output_option(*TEXTS)
@at_recorder
def decisions(
    recorder: _Recorders,
    subject: str,
    server: str | None,
    service: str,
    node: str,
    since: float,
    until: float | None,
    limit: int,
    output: str,
) -> None:
    """Show decisions about SUBJECT (a task, service, host or project), or all, with the facts they were based on."""
    request = pb.ListDecisionsRequest(
        server=server or "", subject=subject, service_id=service, node=node, page_size=limit
    )
    request.since.FromMilliseconds(round(since * 1_000))
    if until is not None:
        request.until.FromMilliseconds(round(until * 1_000))

    async def work() -> Exit:
        answer = await recorder.call("ListDecisions", request)
        if is_data(output):
            print_data(answer, output)
        else:
            names = ("TIME", "SERVER", "SUBJECT", "WHAT", "BY", "WHY")
            print_table(names, [_decision_row(one) for one in answer.decision])
            if answer.next_page_token:
                warn(f"older ones are left out: give --until, or --limit above {limit}")
        return Exit.OK

    recorder.run(work())


def _decision_row(one: pb.Decision) -> tuple[str, ...]:
    what, why = one.event, "; ".join(filter(None, (one.message, *one.based_on)))
    if not one.event:
        end = _local(one.gap_until.ToMilliseconds()) if one.HasField("gap_until") else "now"
        what, why = _WORDS[pb.EVENT_KIND_GAP], f"until {end}: {one.message}"
    return _local(one.time.ToMilliseconds()), one.server, one.subject, what, one.by, why


def _row(event: pb.Event) -> tuple[str, ...]:
    when = _local(event.time.ToMilliseconds())
    why = event.message or event.reason
    if event.kind == pb.EVENT_KIND_GAP:
        end = _local(event.until.ToMilliseconds()) if event.HasField("until") else "now"
        why = f"until {end}: {event.message}"
    return when, _WORDS.get(event.kind, "changed"), event.instance_id, event.service_id, event.node, why


def _instance_row(instance: Any) -> tuple[str, ...]:
    meta = instance.meta
    return meta.id, meta.service_id, instance.spec.node_name, rows.readiness(instance), rows.revision(instance)


def _local(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1_000).astimezone():%Y-%m-%d %H:%M:%S}"
