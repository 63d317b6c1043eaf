"""rollout show, rollout promote, rollout abort: what is asked and said of a roll-out."""

from __future__ import annotations

from typing import Any, Final

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, is_data, output_option, print_data
from hqcli.terminal import say
from nannyctl.commands.rollout_show import show
from nannyctl.nanny_server import NannyServer, nanny_server, new_request_id, why_options
from nannyctl.output import services as out
from nannyctl.session import complain
from nannypb.v1 import service_pb2 as pb

_order_option: Final = click.option(
    "--order", default="", metavar="ID", help="The order that is meant. [that which is under way now]"
)
_step_option: Final = click.option(
    "--step", "number", type=click.IntRange(0), default=None, metavar="N", help="The step that is meant. [the same]"
)


@click.group()
def rollout() -> None:
    """Show a roll-out; promote or abort one in steps."""


@rollout.command("promote")
@click.argument("name")
@_order_option
@_step_option
@why_options
@output_option(*LISTS)
@nanny_server
def promote(server: NannyServer, name: str, order: str, number: int | None, by: pb.Authorship, output: str) -> None:
    """Go on: end the step that waits for people. Refused if another order or step is under way than is meant."""
    server.run(_say(server, "PromoteRollout", (name, order, number), by, output), writing=True)


@rollout.command("abort")
@click.argument("name")
@_order_option
@_step_option
@why_options
@output_option(*LISTS)
@nanny_server
def abort(server: NannyServer, name: str, order: str, number: int | None, by: pb.Authorship, output: str) -> None:
    """Fail the roll-out: it stops, or is rolled back, as the service's policy says."""
    server.run(_say(server, "AbortRollout", (name, order, number), by, output), writing=True)


async def _say(
    server: NannyServer, method: str, meant: tuple[str, str, int | None], by: pb.Authorship, output: str
) -> Exit:
    name, order, number = meant
    if not order or number is None:
        now = _under_way((await server.call("GetService", pb.GetServiceRequest(service_id=name))).service)
        if now is None:
            complain(f"{name}: no roll-out is under way: see `nanny status {name}`.")
            return Exit.REFUSED
        order = order or now.order.id
        number = now.action.step_number if number is None else number
    request: Any = getattr(pb, f"{method}Request")(
        service_id=name, order_id=order, step_number=number, by=by, request_id=new_request_id()
    )
    answer = await server.call(method, request)
    if is_data(output):
        print_data(answer, output)
    else:
        say(out.show_service(answer.service))
    return Exit.OK


def _under_way(service: pb.Service) -> pb.SnapshotState | None:
    return next((one for one in service.snapshot if one.current == pb.CURRENT_STATE_ACTIVATING), None)


rollout.add_command(show)
