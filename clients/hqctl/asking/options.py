"""Options that several commands share: servers, spans of time, and instance filters."""

from __future__ import annotations

import functools
import getpass
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hqcli.options import addresses_in
from hqcli.selectors import BadSelector, is_met, put_selector
from hqctl.asking.cluster import name_cluster
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


def addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    """`host:port` of each server; a comma separates several, the port may be left out."""
    try:
        named = addresses_in(given)
    except ValueError as error:
        raise click.UsageError(f"--server (or HQ_SERVER): {error}") from None
    if not named:
        raise click.UsageError("no server given: use --server HOST:PORT or set HQ_SERVER")
    return named


F = TypeVar("F", bound=Callable[..., Any])


def strong_option(function: F) -> F:
    """Give a command the option --strong."""
    text = "Read everything acknowledged so far (strong consistency); costs a round trip to the store."
    return click.option("--strong", is_flag=True, help=text)(function)


def ordering(function: F) -> F:
    """Give an order the options --reason and --by, which are kept with the record."""
    reason = click.option("-m", "--reason", required=True, callback=_check_reason, help="Reason, kept with the record.")
    by = click.option("--by", default=_caller, help="Who does this; default: you.")
    return reason(by(function))


def _check_reason(_context: click.Context, _param: click.Parameter, text: str) -> str:
    if not text.strip():
        raise click.BadParameter("is empty: say why.")
    return text


def _caller() -> str:
    """The caller, as known to this machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


_SELECTOR = "Only with these labels: tier=front, tier!=front, tier in (a,b), tier notin (a), tier, !tier; commas join."


def selecting(function: F) -> F:
    """Give a command the options of a filter and the argument SERVICE, and the filter as argument `where`."""
    return click.argument("services", nargs=-1, metavar="[SERVICE]...")(selecting_by_options(function))


def selecting_by_options(function: F) -> F:
    """As `selecting`, without the argument SERVICE."""

    @click.option("--service", "more_services", multiple=True, help="Only this service; repeatable.")
    @click.option("--node", "nodes", multiple=True, help="Only this node; repeatable.")
    @click.option("--revision", "revisions", multiple=True, help="Only with this revision in the spec.")
    @click.option("--cluster", "clusters", multiple=True, help="Only in this cluster.")
    @click.option("-l", "--selector", multiple=True, metavar="SELECTOR", help=_SELECTOR)
    @click.option(
        "--ready/--not-ready",
        default=None,
        help="Only ready instances, or only those that are not (never reported included).",
    )
    @click.option("--silent", is_flag=True, help="Only instances whose agent is silent, or never began to report.")
    @click.option("--allocated/--unallocated", default=None, help="Only with, or only without, an allocation.")
    @functools.wraps(function)
    def command(
        *args: Any,
        more_services: tuple[str, ...],
        nodes: tuple[str, ...],
        revisions: tuple[str, ...],
        clusters: tuple[str, ...],
        selector: tuple[str, ...],
        ready: bool | None,
        silent: bool,
        allocated: bool | None,
        services: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> Any:
        if kwargs.get("ids") and len(clusters) == 1:  # --cluster says whose ids are meant, and is no filter
            name_cluster(click.get_current_context(), clusters[0])
            clusters = ()
        where = pb.InstanceFilter(
            service_id=services + more_services,
            node_name=nodes,
            revision_id=revisions,
            cluster=clusters,
            readiness=_READINESS[ready],
            agent=pb.AGENT_FILTER_SILENT if silent else pb.AGENT_FILTER_UNSPECIFIED,
            allocated=_ALLOCATION[allocated],
        )
        for text in selector:
            _put_selector(text, where)
        return function(*args, where=where, **kwargs)

    return command  # type: ignore[return-value]


_READINESS = {
    None: pb.READINESS_FILTER_UNSPECIFIED,
    True: pb.READINESS_FILTER_READY,
    False: pb.READINESS_FILTER_NOT_READY,
}
_ALLOCATION = {
    None: pb.ALLOCATION_FILTER_UNSPECIFIED,
    True: pb.ALLOCATION_FILTER_ALLOCATED,
    False: pb.ALLOCATION_FILTER_NOT_ALLOCATED,
}


def is_everything(where: pb.InstanceFilter) -> bool:
    """Whether no option was given: the filter lets everything pass."""
    return not where.ByteSize()


def is_meant(instance: instance_pb2.Instance, where: pb.InstanceFilter) -> bool:
    """Whether an instance meets the parts of a filter that replicas of 0.1 ignore, which answer with more instances.

    If HQ does not say whether its agent is heard, it does not meet a filter for silent agents.
    """
    is_labelled = all(is_met(one, instance.meta.labels) for one in where.label_requirement)
    return is_labelled and (not where.agent or instance.status.agent.status == instance_pb2.CONDITION_STATUS_FALSE)


def _put_selector(text: str, where: pb.InstanceFilter) -> None:
    try:
        put_selector(text, where)
    except BadSelector as fault:
        raise click.BadParameter(str(fault), param_hint="-l") from None
