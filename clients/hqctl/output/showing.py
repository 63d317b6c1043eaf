"""How a list of instances is shown: format, order, columns; and the options that say so."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from hqctl.output.formats import is_data, print_items, print_yaml
from hqctl.output.rows import Columns, spans_clusters
from hqctl.output.tables import print_table
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Showing:
    """What the options of a list say."""

    limit: int | None = None
    sort_by: str = ""
    label_keys: tuple[str, ...] = ()
    labels: bool = False
    headers: bool = True

    def show(self, instances: list[instance_pb2.Instance], sources: list[pb.Source], output: str) -> None:
        """Print instances in a format of `-o`."""
        if self.sort_by:
            from hqctl.output.sorting import ordered

            instances = ordered(instances, self.sort_by)
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
    """Give a command the options of a list, and what they say as argument `how`."""

    @click.option("--limit", type=click.IntRange(1), help="Show at most this many.")
    @click.option(
        "--sort-by", default="", metavar="COLUMN|PATH", help="Sort by, e.g. heartbeat, node or .meta.labels.tier"
    )
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
            from hqctl.output.sorting import ordered

            ordered([], sort_by)  # a fault of it is told before anything is asked
        keys = tuple(key for text in label_columns for key in text.split(",") if key)
        how = Showing(limit, sort_by, keys, show_labels, not no_headers)
        return function(*args, how=how, **kwargs)

    return command  # type: ignore[return-value]
