"""set: change single attributes of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit
from hqctl.asking.session import HqctlSession, with_session
from hqpb.v1 import instance_pb2

if TYPE_CHECKING:
    from hqclient.client import Client

_WEIGHT = "weight"


@click.command("set")
@click.argument("words", nargs=-1, required=True, metavar="INSTANCE... weight=NUMBER")
@with_session
def set_(session: HqctlSession, words: tuple[str, ...]) -> None:
    """Change single attributes of instances, and nothing else of them.

    weight: share of new traffic, 0 to 1000; nothing after the equals sign: back to 100. 0: ready,
    but takes no new traffic. What runs goes on running.
    """
    ids = [word for word in words if "=" not in word]
    weight = _weight_of([word for word in words if "=" in word])
    if not ids:
        raise click.UsageError("name at least one instance: hqctl set web-1 weight=10")

    async def work(client: Client) -> Exit:
        worst = Exit.OK
        for instance_id in ids:
            worst = max(worst, await _set_weight(session, client, instance_id, weight))
        return worst

    session.run(work, writing=True)


def _weight_of(given: list[str]) -> int | None:
    """The weight that is given; None: `weight=`, which removes it. Raises UsageError."""
    if len(given) != 1:
        raise click.UsageError("give one attribute: weight=NUMBER")
    name, _, value = given[0].partition("=")
    if name != _WEIGHT:
        raise click.UsageError(f"{name}: not an attribute that can be set; use weight, or `hqctl edit` for the rest")
    if value and not (value.isascii() and value.isdigit() and len(value) < 10):
        raise click.UsageError(f"weight: {value} is not a number from 0 to 1000")
    return int(value) if value else None


async def _set_weight(session: HqctlSession, client: Client, instance_id: str, weight: int | None) -> Exit:
    from hqclient.client import HqApiError

    wanted = instance_pb2.Instance(
        meta=instance_pb2.InstanceMeta(id=instance_id), spec=instance_pb2.InstanceSpec(weight=weight)
    )
    try:
        stored = (await client.update(wanted, fields=("spec.weight",))).instance
    except HqApiError as error:
        return session.tell(error, writing=True, subject=instance_id)
    click.echo(f"{instance_id} set (version {stored.meta.version})")
    return Exit.OK
