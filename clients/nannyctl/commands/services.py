"""service, snapshot, status, instances, history, watch: what the Nanny server knows."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import click
from google.protobuf.field_mask_pb2 import FieldMask

from hqcli.call import is_read
from hqcli.exits import Exit
from hqcli.formats import LISTS, TEXTS, as_dict, is_data, output_option, print_data
from hqcli.options import DurationParam
from hqcli.sorting import columns_of, sort_key, sort_option
from hqcli.terminal import say
from hqclient.pages import ask_pages
from nannyctl.attributes import parse_attributes
from nannyctl.commands.waiting import AtRest, rest_result, rolled_back_result, wait_for_goal, wait_option
from nannyctl.nanny_server import NannyServer, nanny_server, new_request_id, why_options, without_server
from nannyctl.output import services as out
from nannyctl.session import complain
from nannypb.v1 import service_pb2 as pb


@click.group()
def service() -> None:
    """Create, list and change services of Nanny."""


@service.command("create")
@click.argument("name")
@click.option(
    "--max-unavailable",
    default=None,
    metavar="N|N%",
    help="Most instances that may be unavailable at once in a roll-out.",
)
@click.option(
    "--max-failures",
    default=None,
    metavar="N|N%",
    help="Most instances that may fail in a roll-out; in the first batch none may fail for good.",
)
@click.option(
    "--progress-deadline",
    type=DurationParam(),
    default=None,
    metavar="SPAN",
    help="Fail a batch that makes no progress for this long, e.g. 10m.",
)
@click.option(
    "--min-ready-time",
    type=DurationParam(),
    default=None,
    metavar="SPAN",
    help="How long an instance must stay ready to count as done.",
)
@click.option(
    "--soak",
    type=DurationParam(),
    default=None,
    metavar="SPAN",
    help="How long the first batch, and at the end all instances, must stay ready, e.g. 5m.",
)
@click.option("--location", multiple=True, help="Roll out in this order of locations; repeatable.")
@click.option("--roll-back/--stop-and-show", default=None, help="What to do when a roll-out fails.")
@click.option(
    "--set-current-on-activation/--keep-current-on-activation",
    default=None,
    help="Whether a snapshot becomes HEAD when it is activated; by default it does not.",
)
@click.option("--description", default=None, help="Description for people.")
@click.option("--replace", is_flag=True, help="Replace the attributes that are named here, of a service that exists.")
@click.option("--adopt", is_flag=True, help="Take over its instances in HQ as they run, changing nothing.")
@why_options
@output_option(*LISTS)
@nanny_server
def create(
    server: NannyServer, name: str, by: pb.Authorship, output: str, *, replace: bool, adopt: bool, **told: Any
) -> None:
    """Create a service, or replace some of its attributes (--replace)."""
    if replace and adopt:
        raise click.UsageError("--adopt is for a new service: leave out --replace")
    info, paths = _info(told)
    if replace and not paths:
        raise click.UsageError("--replace: name the attributes to replace, such as --max-unavailable 2")
    request: Any = pb.CreateServiceRequest(service_id=name, info=info, by=by, request_id=new_request_id(), adopt=adopt)
    if replace:
        mask = FieldMask(paths=paths)
        request = pb.UpdateServiceRequest(
            service_id=name, info=info, by=by, request_id=new_request_id(), update_mask=mask
        )
    method = "UpdateService" if replace else "CreateService"
    _print_answer(server, method, request, output, lambda answer: out.show_service(answer.service))


_FIELDS: Final = {
    "max_unavailable": "rollout.max_unavailable",
    "max_failures": "rollout.max_failures",
    "progress_deadline": "rollout.progress_deadline_s",
    "min_ready_time": "rollout.min_ready_s",
    "soak": "rollout.soak_s",
    "location": "rollout.location",
    "roll_back": "rollout.roll_back",
    "set_current_on_activation": "set_snapshot_as_current_upon_activation",
    "description": "description",
}
"""By option: the field of the info attributes."""


def _info(told: dict[str, Any]) -> tuple[pb.InfoAttributes, list[str]]:
    """The attributes that options name, and their fields."""
    info, paths = pb.InfoAttributes(), []
    for option, path in _FIELDS.items():
        if told[option] in (None, ()):
            continue
        paths.append(path)
        value = math.ceil(told[option]) if path.endswith("_s") else told[option]
        of, name = (info.rollout, path.removeprefix("rollout.")) if path.startswith("rollout.") else (info, path)
        if isinstance(value, tuple):
            getattr(of, name).extend(value)
        else:
            setattr(of, name, value)
    return info, paths


@service.command("set")
@click.argument("name")
@click.argument("attributes", nargs=-1, required=True, metavar="ATTRIBUTE=VALUE...")
@why_options
@output_option(*LISTS)
@nanny_server
def set_attributes(server: NannyServer, name: str, attributes: tuple[str, ...], by: pb.Authorship, output: str) -> None:
    """Set attributes of a service, such as max-unavailable=2; all others stay. An empty value: the default.

    It is refused if somebody else changes the attributes at the same moment.
    """
    info, paths = parse_attributes(attributes)
    server.run(_update_attributes(server, name, info, paths, by, output), writing=True)


async def _update_attributes(
    server: NannyServer, name: str, info: pb.InfoAttributes, paths: list[str], by: pb.Authorship, output: str
) -> Exit:
    now = (await server.call("GetService", pb.GetServiceRequest(service_id=name))).service
    request = pb.UpdateServiceRequest(
        service_id=name,
        info=info,
        by=by,
        request_id=new_request_id(),
        update_mask=FieldMask(paths=paths),
        info_version=now.info_version,
    )
    return await _answer(server, "UpdateService", request, output, lambda answer: out.show_service(answer.service))


@service.command("leave-out")
@click.argument("name")
@click.argument("locations", nargs=-1)
@why_options
@output_option(*LISTS)
@nanny_server
def leave_out(server: NannyServer, name: str, locations: tuple[str, ...], by: pb.Authorship, output: str) -> None:
    """Leave LOCATIONS out of roll-outs: nothing is written there. Without LOCATIONS, none is left out."""
    request = pb.UpdateServiceRequest(
        service_id=name,
        info=pb.InfoAttributes(rollout=pb.RolloutPolicy(leave_out=locations)),
        update_mask=FieldMask(paths=["rollout.leave_out"]),
        by=by,
        request_id=new_request_id(),
    )
    _print_answer(server, "UpdateService", request, output, lambda answer: out.show_service(answer.service))


@service.command("list")
@sort_option
@output_option(*LISTS)
@nanny_server
def list_(server: NannyServer, sort_by: str, output: str) -> None:
    """List services with their states."""
    none = "There are no services yet: create one with `nanny service create NAME`."
    shown = _Listed("service", out.SERVICE_HEAD, out.service_row, none)
    _print_list(server, "ListServices", pb.ListServicesRequest(), output, sort_by, shown)


@service.command("show")
@click.argument("name")
@output_option(*LISTS)
@nanny_server
def show(server: NannyServer, name: str, output: str) -> None:
    """Show a service: its snapshots, their states and targets, and progress."""
    request = pb.GetServiceRequest(service_id=name)
    _print_answer(server, "GetService", request, output, lambda answer: out.show_service(answer.service))


@click.command()
@click.argument("name")
@output_option(*LISTS)
@without_server
@nanny_server
def status(server: NannyServer, name: str, output: str) -> None:
    """Show a service as `service show` does, for scripts.

    Exit code 0: all is as ordered, and enough instances are ready; 8: not yet; 1: it stopped short of that; 11: the
    last order failed, and the snapshot that was active before is active again.
    """
    server.run(_print_status(server, name, output))


async def _print_status(server: NannyServer, name: str, output: str) -> Exit:
    answer = await server.call("GetService", pb.GetServiceRequest(service_id=name))
    now: pb.Service = answer.service
    if is_data(output):
        print_data(answer, output)
    else:
        say(out.show_service(now))
    result = rolled_back_result(now) or rest_result(now)
    if result is None or (result.code is Exit.OK and now.remark):
        return Exit.NOT_YET
    if result.message:
        complain(f"{name}: {result.message}.")
    return result.code


@service.command("delete")
@click.argument("name")
@why_options
@nanny_server
def delete(server: NannyServer, name: str, by: pb.Authorship) -> None:
    """Delete a service; all its snapshots must be DESTROYED first."""
    request = pb.DeleteServiceRequest(service_id=name, by=by, request_id=new_request_id())
    _print_answer(server, "DeleteService", request, "table", lambda answer: f"{name}: deleted")


@click.group()
def snapshot() -> None:
    """Add and look at snapshots: immutable versions of a service."""


@snapshot.command("add")
@click.argument("name")
@click.option("-f", "--file", required=True, metavar="FILE", help="The description; - is stdin.")
@click.option("--parent", default="", metavar="SNAPSHOT", help="Refuse unless HEAD is still this snapshot.")
@click.option("--check", is_flag=True, help="Check everything, store nothing.")
@why_options
@output_option(*LISTS)
@nanny_server
def add(server: NannyServer, name: str, file: str, parent: str, by: pb.Authorship, output: str, *, check: bool) -> None:
    """Add a snapshot from a description, and make it HEAD. The same content again is the same snapshot."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise click.BadParameter(
            f"{file}: cannot be read: {error.strerror}: give a file that this user can read", param_hint="-f"
        ) from None
    request = pb.CreateSnapshotRequest(
        service_id=name, content=content, parent=parent, by=by, request_id=new_request_id(), validate_only=check
    )

    def words(answer: pb.CreateSnapshotResponse) -> str:
        end = "would be stored" if check else "is HEAD"
        return f"{name}: snapshot {answer.snapshot.id} {end} ({answer.snapshot.instances} instances)"

    _print_answer(server, "CreateSnapshot", request, output, words)


@snapshot.command("list")
@click.argument("name")
@sort_option
@output_option(*LISTS)
@nanny_server
def snapshots(server: NannyServer, name: str, sort_by: str, output: str) -> None:
    """List the snapshots of a service, newest first."""
    request = pb.ListSnapshotsRequest(service_id=name)
    none = f"{name} has no snapshots yet: add one with `nanny snapshot add {name} -f FILE`."
    shown = _Listed("snapshot", out.SNAPSHOT_HEAD, out.snapshot_row, none)
    _print_list(server, "ListSnapshots", request, output, sort_by, shown)


@snapshot.command("show")
@click.argument("name")
@click.argument("snapshot_id", default="")
@output_option(*TEXTS)
@nanny_server
def content(server: NannyServer, name: str, snapshot_id: str, output: str) -> None:
    """Print the description of a snapshot, HEAD by default."""
    request = pb.GetSnapshotRequest(service_id=name, snapshot_id=snapshot_id)
    _print_answer(server, "GetSnapshot", request, output, lambda answer: answer.snapshot.content.decode().rstrip())


@click.command()
@click.argument("name")
@click.argument("snapshot_id", default="")
@click.option("--set", "chosen", default="", metavar="INSTANCE", help="Set the target of this instance alone.")
@click.option(
    "--target",
    type=click.Choice(["CREATED", "PREPARED", "ACTIVE"], case_sensitive=False),
    default=None,
    help="That target.",
)
@click.option("--location", default="", help="Location of that instance, if its id is in several.")
@why_options
@output_option(*LISTS)
@nanny_server
def instances(
    server: NannyServer,
    name: str,
    snapshot_id: str,
    chosen: str,
    target: str | None,
    location: str,
    by: pb.Authorship,
    output: str,
) -> None:
    """List the instances of a snapshot (default: the active one), or set the target of one of them.

    The snapshot's own state does not change, and the next roll-out or roll-back overrides it.
    """
    if bool(chosen) != bool(target):
        raise click.UsageError("--set INSTANCE and --target go together")
    if not chosen:
        request = pb.ListInstancesRequest(service_id=name, snapshot_id=snapshot_id)
        _print_answer(server, "ListInstances", request, output, out.show_instances)
    order = pb.SetInstanceTargetRequest(
        service_id=name,
        snapshot_id=snapshot_id,
        location=location,
        instance_id=chosen,
        target=f"TARGET_{target}",
        by=by,
        request_id=new_request_id(),
    )
    _print_answer(server, "SetInstanceTarget", order, output, lambda answer: out.show_service(answer.service))


@click.command()
@click.argument("name")
@output_option(*LISTS)
@nanny_server
def history(server: NannyServer, name: str, output: str) -> None:
    """Show who did what to a service, newest first."""
    request = pb.ListHistoryRequest(service_id=name)
    _print_answer(server, "ListHistory", request, output, lambda answer: out.show_history(answer.entry))


@click.command()
@click.argument("name")
@wait_option
@nanny_server
def watch(server: NannyServer, name: str, wait_s: float | None) -> None:
    """Follow a service. Without --wait until Ctrl-C, with it until nothing is under way."""
    server.run(wait_for_goal(server, name, wait_s, AtRest() if wait_s is not None else None))


class _Listed(NamedTuple):
    """A list in an answer: its field, the table of its items, and the message if there are none."""

    field: str
    head: Sequence[str]
    row: Callable[[Any], Sequence[str]]
    none: str


def _print_list(server: NannyServer, method: str, request: Any, output: str, sort_by: str, shown: _Listed) -> NoReturn:
    key = sort_key(sort_by, columns_of(shown.head, shown.row)) if sort_by else None

    async def work() -> Exit:
        has_pages = "page_token" in request.DESCRIPTOR.fields_by_name
        ask = partial(server.call, method)
        answer = await (ask_pages(ask, request) if has_pages else ask(request))
        found = getattr(answer, shown.field)
        if key:
            found.sort(key=key)
        if is_data(output):
            print_data({shown.field: [], **as_dict(answer)}, output)
        elif found:
            say(out.table(shown.head, map(shown.row, found)))
        else:
            click.echo(shown.none, err=True)
        return Exit.OK

    server.run(work())


def _print_answer(server: NannyServer, method: str, request: Any, output: str, words: Any) -> NoReturn:
    server.run(_answer(server, method, request, output, words), writing=not is_read(method))


async def _answer(server: NannyServer, method: str, request: Any, output: str, words: Any) -> Exit:
    answer = await server.call(method, request)
    if is_data(output):
        print_data(answer, output)
    else:
        say(words(answer))
    return Exit.OK
