"""disruptions: who takes what down, who waits and why, and operators' orders to the CMS."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import click

from cmspb.v1 import cms_pb2 as pb
from hqcli.documents import BadDocument, texts
from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data
from hqcli.options import DurationParam
from hqcli.readable import clock_time, mended_words
from hqcli.terminal import print_table, say, warn
from hqcli.watching import watched
from hqctl.asking.cms import CmsProcesses, at_cms
from hqctl.asking.options import ordering
from hqctl.asking.session import complain
from hqkinds.cms import TASK, task_status

_PLURALS = {"switch": "switches", "dc": "data centres"}


@click.group(invoke_without_command=True, short_help="Show disruptions, and control what may be taken down.")
@watched
@click.option("--node", default="", help="Tasks that touch this host.")
@click.option("--service", default="", help="Tasks that touch this service.")
@click.option("--issuer", default="", help="Tasks of this issuer.")
@output_option(*TEXTS)
@at_cms
def disruptions(cms: CmsProcesses, node: str, service: str, issuer: str, output: str) -> None:
    """Show tasks at the CMS (cluster management system, `cms serve`), which approves disruptions.

    They say who takes what down, who waits, and why.
    """

    async def work() -> Exit:
        answer: pb.ListTasksResponse = await cms.call_pages(
            "ListTasks", pb.ListTasksRequest(host=node, service=service, issuer=issuer)
        )
        if is_data(output):
            print_data(answer, output)
        else:
            print_table(TASK.heads(), TASK.rows(answer.state))
        return Exit.OK

    cms.run(work())


def _command(short_help: str, name: str | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """A subcommand that is given the Cms."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        return disruptions.command(name=name, short_help=short_help)(at_cms(function))

    return decorate


@_command("Show why a task waits, and what would let it proceed.")
@click.argument("task")
@output_option(*TEXTS)
def why(cms: CmsProcesses, task: str, output: str) -> None:
    """Show why TASK waits: floors, what is available, who holds it, who is not ready, and what to do."""

    async def work() -> Exit:
        answer = await cms.call("WhyTask", pb.WhyTaskRequest(id=task))
        if is_data(output):
            print_data(answer, output)
        else:
            for line in task_story(answer):
                say(line)
        return Exit.OK

    cms.run(work())


@_command("Show in which waves work on hosts could proceed.")
@click.option("-f", "--filename", required=True, metavar="FILE", help="Hosts, one a line; - for standard input.")
@click.option("--action", default="reboot", show_default=True, help="Kind of work.")
@output_option(*TEXTS)
def plan(cms: CmsProcesses, filename: str, action: str, output: str) -> None:
    """Show the waves in which work on the hosts of a file could be done, as things stand."""
    try:
        text = "\n".join(text for _, text in texts((filename,)))
    except BadDocument as error:
        raise click.UsageError(str(error)) from error
    hosts = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]

    async def work() -> Exit:
        answer: pb.PlanResponse = await cms.call("Plan", pb.PlanRequest(host=hosts, action=action))
        if is_data(output):
            print_data(answer, output)
        else:
            rows = [(str(n), str(len(wave.host)), ",".join(wave.host)) for n, wave in enumerate(answer.wave, 1)]
            rows += [("-", "1", f"{misfit.host}: {misfit.reason}") for misfit in answer.misfit]
            print_table(("WAVE", "HOSTS", "NAMES"), rows)
            if answer.unknown:
                warn(f"no instance is known on {', '.join(answer.unknown)}: check the names.")
        return Exit.REFUSED if answer.misfit else Exit.OK

    cms.run(work())


@_command("Ask for approval to work on hosts.")
@click.argument("hosts", nargs=-1, required=True)
@click.option("--action", default="reboot", show_default=True, help="Kind of work.")
@click.option(
    "--id", "task_id", default=lambda: f"hqctl-{secrets.token_hex(4)}", help="Id of the task. Default: generated."
)
@click.option("--group", default="", help="Decide together with the other tasks of this group.")
@click.option("--comment", default="", help="More about it, kept with the reason.")
@click.option(
    "--provisional",
    "confirm",
    is_flag=True,
    help="Ask for a provisional grant, to be confirmed later with `hqctl disruptions confirm`.",
)
@click.option("--dry-run", is_flag=True, help="Show the decision without storing anything.")
@ordering
def ask(
    cms: CmsProcesses,
    hosts: tuple[str, ...],
    action: str,
    task_id: str,
    group: str,
    comment: str,
    confirm: bool,
    dry_run: bool,
    reason: str,
    by: str,
) -> None:
    """Ask for approval to work on HOSTS, as an operator. End it with `hqctl disruptions done` afterwards.

    Exits with 0 if it is granted, 1 if it is rejected, 8 if it waits: repeat the same command with the same
    --id to learn the outcome.
    """
    task = pb.Task(
        id=task_id,
        action=action,
        host=hosts,
        issuer=by,
        type="manual",
        group_id=group,
        comment=": ".join(filter(None, (reason, comment))),
        confirm=confirm,
    )

    async def work() -> Exit:
        answer = await cms.call("CreateTask", pb.CreateTaskRequest(task=task, dry_run=dry_run))
        return _tell(answer.state, is_stored=not dry_run)

    cms.run(work(), writing=not dry_run)


@_command("Make a provisional grant final.", "confirm")
@click.argument("task")
def confirm_task(cms: CmsProcesses, task: str) -> None:
    """Make the provisional grant of TASK final, just before the work begins."""

    async def work() -> Exit:
        state = (await cms.call("ConfirmTask", pb.ConfirmTaskRequest(id=task))).state
        if not state.task.confirm:
            complain(f"{task} was not asked for as provisional: there was nothing to confirm.")
        return _tell(state)

    cms.run(work(), writing=True)


@_command("End your own task when its work is done.")
@click.argument("task")
def done(cms: CmsProcesses, task: str) -> None:
    """End TASK, which you created: its work is done, or not wanted any more."""
    _order(cms, "DeleteTask", pb.DeleteTaskRequest(id=task), f"task {task} ended")


@_command("End anyone's task (recorded).")
@click.argument("task")
@ordering
def end(cms: CmsProcesses, task: str, reason: str, by: str) -> None:
    """End TASK, whoever created it: its work is over, whatever its issuer says."""
    _order(cms, "EndTask", pb.EndTaskRequest(id=task, reason=reason, by=by), f"task {task} ended")


@_command("Give a task more time (recorded).")
@click.argument("task")
@click.option("--for", "span_s", type=DurationParam(1), required=True, help="Time from now, e.g. 2h.")
@ordering
def extend(cms: CmsProcesses, task: str, span_s: float, reason: str, by: str) -> None:
    """Let the work of TASK last longer before it counts as overdue."""
    request = pb.ExtendTaskRequest(id=task, seconds=round(span_s), reason=reason, by=by)
    _order(cms, "ExtendTask", request, f"task {task} extended")


@_command("Let a task go before planned work (recorded).")
@click.argument("task")
@ordering
def expedite(cms: CmsProcesses, task: str, reason: str, by: str) -> None:
    """Make TASK, which waits, urgent: it goes before planned work and roll-outs, and needs no window."""
    request = pb.ExpediteTaskRequest(id=task, reason=reason, by=by)
    _order(cms, "ExpediteTask", request, f"task {task} is urgent")


@_command("Stop granting until `unfreeze`.")
@ordering
def freeze(cms: CmsProcesses, reason: str, by: str) -> None:
    """Grant nothing, at any process, until `hqctl disruptions unfreeze`. What was granted goes on."""
    _order(cms, "Freeze", pb.FreezeRequest(reason=reason, by=by), "frozen: nothing is granted")


@_command("Grant again.")
@ordering
def unfreeze(cms: CmsProcesses, reason: str, by: str) -> None:
    """Grant again after a freeze."""
    _order(cms, "Unfreeze", pb.UnfreezeRequest(reason=reason, by=by), "no longer frozen", resumes=True)


@_command("Resume granting after the CMS's store was restored.", "open")
@ordering
def open_epoch(cms: CmsProcesses, reason: str, by: str) -> None:
    """Resume granting after the CMS's store was restored. First make sure the CMS knows all work that is under way."""
    _order(cms, "Open", pb.OpenRequest(reason=reason, by=by), "granting resumed", resumes=True)


@_command("Show whether approvals are granted, and how current HQ's data is.")
@output_option(*TEXTS)
def status(cms: CmsProcesses, output: str) -> None:
    """Show whether anything is granted now, who decides, and what is known of each location."""

    async def work() -> Exit:
        answer: pb.GetStatusResponse = await cms.call("GetStatus", pb.GetStatusRequest())
        if is_data(output):
            print_data(answer, output)
        else:
            say(f"closed: {answer.closed}" if answer.closed else "approvals are granted")
            say(f"decided by {answer.acting or 'nobody'}, epoch {answer.epoch}")
            if answer.mended:
                say(mended_words(answer.mended, "the process that answered", "its store"))
            rows = [(one.name, str(one.instances), one.reason or "up to date") for one in answer.location]
            print_table(("LOCATION", "INSTANCES", "STATE"), rows)
        return Exit.REFUSED if answer.closed else Exit.OK

    cms.run(work())


def task_story(answer: pb.WhyTaskResponse) -> Iterator[str]:
    """Everything about one task, as lines."""
    state = answer.state
    yield f"{state.task.id}: {task_status(state)} since {clock_time(state.since_time)}"
    yield f"  {state.message}"
    for one in answer.budget:
        mark = "blocks" if one.blocks else "allows"
        yield (
            f"budget {one.name} ({one.rule}) {mark}: floor {one.floor} of {one.total}, "
            f"available {one.available}, needs {one.needs}"
        )
        for holder in one.holder:
            late = ", overdue" if holder.is_overdue else ""
            since = f"since {clock_time(holder.since_time)}{late}"
            yield f"  held by {holder.task_id}: {holder.instances} for {holder.action} of {holder.issuer}, {since}"
        for missing in one.not_ready:
            yield f"  {missing.standing}: {missing.instance.id} on {missing.host}: {missing.reason}"
        if one.not_ready_total > len(one.not_ready):
            yield f"  and {one.not_ready_total - len(one.not_ready)} more"
    for limit in answer.limit:
        mark = "blocks" if limit.blocks else "allows"
        kinds = _PLURALS.get(limit.kind, f"{limit.kind}s")
        yield f"limit {limit.name} {mark}: {len(limit.busy)} of {limit.most} {kinds} under work"
    for note in state.note:
        yield f"note: {note}"
    if state.retry_after_seconds:
        yield f"ask again in {state.retry_after_seconds} s"


def _order(cms: CmsProcesses, method: str, request: Any, told: str, *, resumes: bool = False) -> None:
    """`resumes`: the order resumes granting if that was stopped."""

    async def work() -> Exit:
        goes_on = resumes and not (await cms.call("GetStatus", pb.GetStatusRequest())).closed
        await cms.call(method, request)
        click.echo("nothing had stopped it: approvals are granted" if goes_on else told)
        return Exit.OK

    cms.run(work(), writing=True)


def _tell(state: pb.TaskState, *, is_stored: bool = True) -> Exit:
    waits = state.status == pb.TASK_STATUS_IN_PROCESS
    task = state.task.id
    steps = f"; the reasons: hqctl disruptions why {task}; to check again, repeat this command with --id {task}"
    say(f"{task}: {task_status(state)}: {state.message}{steps if waits and is_stored else ''}")
    return Exit.TIMEOUT if waits else Exit.OK if state.status == pb.TASK_STATUS_OK else Exit.REFUSED
