"""target, activate, rollback, restart, pause, resume, stop, control: orders to the Nanny server."""

from __future__ import annotations

import functools
from typing import Any

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_data
from hqcli.readable import mended_words
from hqcli.terminal import say
from nannyctl.commands.waiting import AtRest, Goal, TargetReached, stop_result, wait_for_goal, wait_option
from nannyctl.nanny_server import NannyServer, nanny_server, new_request_id, why_options, without_server
from nannyctl.output import services as out
from nannyctl.session import complain
from nannypb.v1 import service_pb2 as pb

_TARGETS = click.Choice(["DESTROYED", "CREATED", "PREPARED", "ACTIVE"], case_sensitive=False)
_CONTROL = {
    "freeze": pb.CONTROL_ORDER_FREEZE,
    "unfreeze": pb.CONTROL_ORDER_UNFREEZE,
    "open": pb.CONTROL_ORDER_OPEN_EPOCH,
}


@click.command()
@click.argument("name")
@click.argument("target", type=_TARGETS)
@click.argument("snapshot_id", default="")
@click.option(
    "--fill", is_flag=True, help="With CREATED: write the revisions to HQ now, instead of when preparing begins."
)
@click.option("--skip-steps", is_flag=True, help="With ACTIVE: by batches alone, without the service's steps.")
@why_options
@wait_option
@output_option(*LISTS)
@nanny_server
def target(
    server: NannyServer,
    name: str,
    target: str,
    snapshot_id: str,
    by: pb.Authorship,
    wait_s: float | None,
    output: str,
    *,
    fill: bool,
    skip_steps: bool,
) -> None:
    """Set the target of a snapshot (HEAD by default): ACTIVE rolls it out, or back to it."""
    request = pb.SetTargetRequest(
        service_id=name,
        snapshot_id=snapshot_id,
        target=f"TARGET_{target.upper()}",
        fill_pods_configuration=fill,
        skip_steps=skip_steps,
        by=by,
        request_id=new_request_id(),
    )
    server.run(_run_order(server, "SetTarget", request, wait_s, output), writing=True)


_waits = functools.partial(wait_option, default="1h")
_ON_ALL_NODES = (pb.CURRENT_STATE_PREPARED, pb.CURRENT_STATE_DEACTIVATING, pb.CURRENT_STATE_DEACTIVATE_PENDING)
_ROLLBACK = "rollback-"  # begins the request ids of `nanny rollback`: orders of earlier versions have no `roll_back`


@click.command()
@click.argument("name")
@click.argument("snapshot_id", default="")
@why_options
@_waits
@output_option(*LISTS)
@without_server
@nanny_server
def activate(
    server: NannyServer, name: str, snapshot_id: str, by: pb.Authorship, wait_s: float | None, output: str
) -> None:
    """Roll a snapshot (HEAD by default) out, and wait: `target NAME ACTIVE --wait 1h`."""
    server.run(_run_order(server, "SetTarget", _activation(name, snapshot_id, by), wait_s, output), writing=True)


@click.command()
@click.argument("name")
@why_options
@_waits
@output_option(*LISTS)
@without_server
@nanny_server
def rollback(server: NannyServer, name: str, by: pb.Authorship, wait_s: float | None, output: str) -> None:
    """Roll back to the snapshot that was ACTIVE before this one, and wait.

    One that failed is never chosen. Given again while it is under way, the command waits on. Once it is done, the same
    command goes forward again, to the one it left: look at `nanny status NAME` first.
    """
    server.run(_run_rollback(server, name, by, wait_s, output), writing=True)


async def _run_rollback(server: NannyServer, name: str, by: pb.Authorship, wait_s: float | None, output: str) -> Exit:
    now = await server.call("GetService", pb.GetServiceRequest(service_id=name))
    under_way, before = rollback_under_way(now.service), previous_snapshot(now.service)
    if under_way is not None:  # it is not sent again: others may have ordered it, with other words
        request = _roll_back(name, under_way.snapshot_id, by, under_way.order.id)
        return await _wait_and_show(server, now, request, wait_s, output)
    if not before:
        complain(
            f"{name}: no snapshot was ACTIVE before that is still on the nodes: choose one of `nanny snapshot list "
            f"{name}` and order it with `nanny activate {name} SNAPSHOT`."
        )
        return Exit.REFUSED
    request = _roll_back(name, before, by, f"{_ROLLBACK}{new_request_id()}")
    return await _run_order(server, "SetTarget", request, wait_s, output)


def rollback_under_way(service: pb.Service) -> pb.SnapshotState | None:
    """Return the snapshot that an earlier `nanny rollback` goes back to, while it does."""
    ordered = (one for one in service.snapshot if one.target == pb.TARGET_ACTIVE and _is_roll_back(one.order))
    return next((one for one in ordered if one.order.outcome == pb.ORDER_OUTCOME_OPEN), None)


def _is_roll_back(order: pb.Order) -> bool:
    return order.roll_back or order.id.startswith(_ROLLBACK)


def previous_snapshot(service: pb.Service) -> str:
    """The snapshot that was ACTIVE before the one with target ACTIVE; empty: none was, or none has this target."""
    active = next((one for one in service.snapshot if one.target == pb.TARGET_ACTIVE), None)
    if active is None:
        return ""
    left = [one for one in service.snapshot if one.target == pb.TARGET_PREPARED and _has_served(one)]
    # A restart has the content of the one before, so do not go back to that, unless the restart is not complete.
    left = [one for one in left if one.current != pb.CURRENT_STATE_PREPARED or _first(one) != _first(active)]
    left.sort(key=lambda one: (one.current == pb.CURRENT_STATE_DEACTIVATE_PENDING, one.current_since.ToNanoseconds()))
    return left[-1].snapshot_id if left else ""


def _first(one: pb.SnapshotState) -> str:
    return one.restart_of or one.snapshot_id


def _has_served(one: pb.SnapshotState) -> bool:
    """Whether it was ACTIVE, and its files are on the nodes. An earlier server tells that only by its last order."""
    if one.current not in _ON_ALL_NODES:
        return False
    order = one.order
    is_reached = (order.target, order.outcome) == (pb.TARGET_ACTIVE, pb.ORDER_OUTCOME_REACHED)
    return one.has_served or is_reached or not order.id


def _activation(name: str, snapshot_id: str, by: pb.Authorship) -> pb.SetTargetRequest:
    return pb.SetTargetRequest(
        service_id=name, snapshot_id=snapshot_id, target=pb.TARGET_ACTIVE, by=by, request_id=new_request_id()
    )


def _roll_back(name: str, snapshot_id: str, by: pb.Authorship, request_id: str) -> pb.SetTargetRequest:
    return pb.SetTargetRequest(
        service_id=name,
        snapshot_id=snapshot_id,
        target=pb.TARGET_ACTIVE,
        by=by,
        request_id=request_id,
        skip_steps=True,
        roll_back=True,
    )


@click.command()
@click.argument("name")
@why_options
@_waits
@output_option(*LISTS)
@nanny_server
def restart(server: NannyServer, name: str, by: pb.Authorship, wait_s: float | None, output: str) -> None:
    """Restart what runs, and wait: the same content is rolled out again, in batches, judged, without steps."""
    request = pb.RestartServiceRequest(service_id=name, by=by, request_id=new_request_id())
    server.run(_run_order(server, "RestartService", request, wait_s, output), writing=True)


@click.command()
@click.argument("name")
@why_options
@output_option(*LISTS)
@nanny_server
def pause(server: NannyServer, name: str, by: pb.Authorship, output: str) -> None:
    """Pause the actions of a service: orders are accepted, nothing more begins."""
    request = pb.PauseActionsRequest(service_id=name, by=by, request_id=new_request_id())
    server.run(_run_order(server, "PauseActions", request, None, output), writing=True)


@click.command()
@click.argument("name")
@why_options
@wait_option
@output_option(*LISTS)
@nanny_server
def resume(server: NannyServer, name: str, by: pb.Authorship, wait_s: float | None, output: str) -> None:
    """Resume the actions of a service."""
    request = pb.ResumeActionsRequest(service_id=name, by=by, request_id=new_request_id())
    server.run(_run_order(server, "ResumeActions", request, wait_s, output), writing=True)


@click.command()
@click.argument("name")
@why_options
@wait_option
@output_option(*LISTS)
@nanny_server
def stop(server: NannyServer, name: str, by: pb.Authorship, wait_s: float | None, output: str) -> None:
    """Switch a service off. Its active snapshot becomes PREPARED: its files stay on the nodes."""
    request = pb.StopServiceRequest(service_id=name, by=by, request_id=new_request_id())
    server.run(_run_order(server, "StopService", request, wait_s, output), writing=True)


@click.command()
@click.argument("order", type=click.Choice(["show", *_CONTROL]), default="show")
@why_options
@output_option(*LISTS)
@nanny_server
def control(server: NannyServer, order: str, by: pb.Authorship, output: str) -> None:
    """Show the leader; freeze or unfreeze all of Nanny, or resume after a restore of its store."""
    server.run(_run_control_order(server, order, by, output), writing=True)


async def _run_control_order(server: NannyServer, order: str, by: pb.Authorship, output: str) -> Exit:
    if order == "show":
        answer = await server.call("GetControl", pb.GetControlRequest())
    else:
        answer = await server.call("SetControl", pb.SetControlRequest(order=_CONTROL[order], by=by))
    if is_data(output):
        print_data(answer, output)
        return Exit.OK
    state = answer.control
    say(f"{state.acting or 'no process'} is the leader" + (f"; {state.why_not}" if state.why_not else ""))
    say(f"approval: {f'by the CMS at {state.cms}' if state.cms else 'by max_unavailable alone, without a CMS'}")
    for location, why in sorted(state.location.items()):
        say(f"location {location}: {why or 'ok'}")
    if state.mended:
        say(mended_words(state.mended, state.process, "its store"))
    return Exit.OK


async def _run_order(server: NannyServer, method: str, request: Any, wait_s: float | None, output: str) -> Exit:
    answer = await server.call(method, request)
    return await _wait_and_show(server, answer, request, wait_s, output)


async def _wait_and_show(server: NannyServer, answer: Any, request: Any, wait_s: float | None, output: str) -> Exit:
    """Wait for an order and show the service that its answer has."""
    code = Exit.OK
    if wait_s is not None:
        since = answer.service.version
        code = await wait_for_goal(server, request.service_id, wait_s, _goal(answer.service, request), since=since)
        answer = await server.call("GetService", pb.GetServiceRequest(service_id=request.service_id))
    if is_data(output):
        print_data(answer, output)
    else:
        say(out.show_service(answer.service))
    return code


def _goal(service: pb.Service, request: Any) -> Goal:
    """Return the goal that an order waits for."""
    if isinstance(request, pb.StopServiceRequest):
        return stop_result
    of_order = (one.snapshot_id for one in service.snapshot if one.order.id == request.request_id)
    if isinstance(request, pb.RestartServiceRequest):
        return TargetReached(request.request_id, next(of_order, ""), pb.TARGET_ACTIVE).verdict
    if not isinstance(request, pb.SetTargetRequest):
        return AtRest()
    return TargetReached(
        request.request_id, next(of_order, "") or _full_snapshot_id(service, request.snapshot_id), request.target
    ).verdict


def _full_snapshot_id(service: pb.Service, named: str) -> str:
    """The full id of a snapshot that was named by its first characters; of HEAD if it was not named."""
    known = (one.snapshot_id for one in service.snapshot)
    return next((one for one in known if named and one.startswith(named)), named or service.head)
