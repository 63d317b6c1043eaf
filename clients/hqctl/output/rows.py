"""Instances as rows of a table: columns, order, and the options that say so."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from google.protobuf.timestamp_pb2 import Timestamp

from hqcli.formats import is_data, print_items, print_yaml
from hqcli.readable import age, target, truth
from hqcli.sorting import sort_key, sort_option
from hqcli.terminal import print_table
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

NARROW = ("INSTANCE", "SERVICE", "NODE", "READY", "REVISION", "HEARTBEAT")
WIDE = (*NARROW, "AGE", "ENDPOINTS", "WEIGHT", "REVISIONS", "LABELS", "VERSION")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a table shows."""

    wide: bool = False
    cluster: bool = False
    label_keys: tuple[str, ...] = ()
    labels: bool = False
    live: bool = False  # kept up to date by a watch, which gets no heartbeats

    @property
    def names(self) -> tuple[str, ...]:
        names = WIDE if self.wide else (*NARROW[:-1], "SINCE") if self.live else NARROW
        shown = (*names, *(key.rpartition("/")[2].upper() for key in self.label_keys))
        shown = (*shown, "LABELS") if self.labels and not self.wide else shown
        return ("CLUSTER", *shown) if self.cluster else shown

    def row(self, instance: instance_pb2.Instance, now_s: float) -> list[str]:
        """The cells of an instance, `-` where there is nothing to say."""
        cells = [
            instance.meta.id,
            instance.meta.service_id,
            instance.spec.node_name,
            readiness(instance),
            revision(instance),
            age(self._moment(instance), now_s),
        ]
        if self.wide:
            cells.append(age(instance.meta.creation_time, now_s))
            cells += [endpoints(instance), weight(instance), revisions(instance), labels(instance)]
            cells.append(str(instance.meta.version))
        cells += [instance.meta.labels.get(key, "") for key in self.label_keys]
        if self.labels and not self.wide:
            cells.append(labels(instance))
        if self.cluster:
            cells.insert(0, instance.meta.cluster)
        return [cell or "-" for cell in cells]

    def _moment(self, instance: instance_pb2.Instance) -> Timestamp:
        return instance.status.ready.last_transition_time if self.live else instance.status.last_heartbeat_time


def spans_clusters(instances: Iterable[instance_pb2.Instance], source_clusters: Iterable[str]) -> bool:
    """Whether more than one cluster answers, so each line has to name its own."""
    return len({*source_clusters, *(instance.meta.cluster for instance in instances)} - {""}) > 1


def readiness(instance: instance_pb2.Instance) -> str:
    """`yes`, `no` with the reason, or `unknown` if nothing was reported yet."""
    condition = instance.status.ready
    word = truth(condition)
    return f"{word}:{reason}" if word == "no" and (reason := _reason(instance)) else word


def revision(instance: instance_pb2.Instance) -> str:
    """The revision wanted READY; a different one that is ready in its place is also named."""
    wanted = wanted_ready(instance)
    others = [r.id for r in instance.status.revision if truth(r.ready) == "yes" and r.id != wanted]
    if wanted in ready_revisions(instance) or not others:
        return wanted or "-"
    return f"{wanted or '-'}(now:{others[0]})"


def wanted_ready(instance: instance_pb2.Instance) -> str:
    """Id of the revision wanted READY; empty: none is."""
    wanted = (r.id for r in instance.spec.revision if r.target == instance_pb2.REVISION_TARGET_READY)
    return next(wanted, "")


def ready_revisions(instance: instance_pb2.Instance) -> set[str]:
    """Ids of the revisions that are ready."""
    return {r.id for r in instance.status.revision if truth(r.ready) == "yes"}


def revisions(instance: instance_pb2.Instance) -> str:
    """All revisions of the spec with what is wanted of them."""
    return ",".join(f"{r.id}={target(r.target)}" for r in instance.spec.revision)


def endpoints(instance: instance_pb2.Instance) -> str:
    """Named ports with the host they are on: `http=db-7:8080`."""
    host = instance.spec.allocation.host or instance.spec.node_name
    ports = instance.spec.allocation.port
    return ",".join(f"{p.name}={host}:{p.number}" for p in ports) or instance.spec.allocation.host


def weight(instance: instance_pb2.Instance) -> str:
    """Its share of new traffic; if none is given, the default."""
    from hqclient.discovery.endpoint import DEFAULT_WEIGHT  # imports gRPC

    return str(instance.spec.weight if instance.spec.HasField("weight") else DEFAULT_WEIGHT)


def labels(instance: instance_pb2.Instance) -> str:
    """Labels in order: `engine=php,tier=1`."""
    return ",".join(f"{key}={value}" for key, value in sorted(instance.meta.labels.items()))


def _reason(instance: instance_pb2.Instance) -> str:
    wanted = wanted_ready(instance)
    conditions: Sequence[instance_pb2.Condition] = [
        *(r.ready for r in instance.status.revision if r.id == wanted),
        instance.status.ready,
    ]
    return next((condition.reason for condition in conditions if condition.reason), "")


_COLUMNS: dict[str, Callable[[instance_pb2.Instance], Any]] = {
    "id": lambda i: i.meta.id,
    "cluster": lambda i: i.meta.cluster,
    "service": lambda i: i.meta.service_id,
    "node": lambda i: i.spec.node_name,
    "ready": readiness,
    "revision": revision,
    "heartbeat": lambda i: i.status.last_heartbeat_time.ToNanoseconds() or None,
    "created": lambda i: i.meta.creation_time.ToNanoseconds() or None,
    "modified": lambda i: i.meta.modification_time.ToNanoseconds() or None,
    "version": lambda i: i.meta.version,
}


def sort_instances(instances: list[instance_pb2.Instance], by: str) -> list[instance_pb2.Instance]:
    """Instances by a column or path, and by id where that is the same; those without a value come last."""
    key = sort_key(by, _COLUMNS)
    return sorted(instances, key=lambda i: (key(i), i.meta.id, i.meta.cluster))


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Showing:
    """The options of a list."""

    limit: int | None = None
    sort_by: str = ""
    label_keys: tuple[str, ...] = ()
    labels: bool = False
    headers: bool = True

    def show(self, instances: list[instance_pb2.Instance], sources: list[pb.Source], output: str) -> None:
        """Print instances in a format of `-o`."""
        if self.sort_by:
            from hqctl.output.rows import sort_instances

            instances = sort_instances(instances, self.sort_by)
        instances = instances[: self.limit]
        if output == "yaml":
            print_yaml(instances)
        elif is_data(output):
            print_items(instances, sources, output)
        elif not instances:
            click.echo("No instance matches.", err=True)
        elif output == "name":
            click.echo("\n".join(instance.meta.id for instance in instances))
        else:
            self._table(instances, sources, wide=output == "wide")

    def _table(self, instances: list[instance_pb2.Instance], sources: list[pb.Source], *, wide: bool) -> None:
        columns = Columns(
            wide=wide,
            cluster=spans_clusters(instances, (source.cluster for source in sources)),
            label_keys=self.label_keys,
            labels=self.labels,
        )
        now_s = time.time()
        rows = [columns.row(instance, now_s) for instance in instances]
        print_table(columns.names, rows, headers=self.headers)


def showing(function: F) -> F:
    """Give a command the options of a list, and their values as argument `how`."""

    @click.option("--limit", type=click.IntRange(1), help="Show at most this many.")
    @sort_option
    @click.option("-L", "--label-columns", multiple=True, metavar="KEY,...", help="Show these labels as columns.")
    @click.option("--show-labels", is_flag=True, help="Show all labels in a last column.")
    @click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
    @functools.wraps(function)
    def command(
        *args: Any,
        limit: int | None,
        sort_by: str,
        label_columns: tuple[str, ...],
        show_labels: bool,
        no_headers: bool,
        **kwargs: Any,
    ) -> Any:
        if sort_by:
            from hqctl.output.rows import sort_instances

            sort_instances([], sort_by)  # report a mistake in it before asking HQ
        keys = tuple(key for text in label_columns for key in text.split(",") if key)
        how = Showing(limit, sort_by, keys, show_labels, not no_headers)
        return function(*args, how=how, **kwargs)

    return command  # type: ignore[return-value]
