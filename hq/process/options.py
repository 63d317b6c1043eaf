"""Flags of the commands. Each is also an environment variable: `--liveness-timeout` is HQ_LIVENESS_TIMEOUT."""

from __future__ import annotations

import click

from serving.auth import security as settings
from serving.flags import Bytes, Duration, Flags, together
from serving.storage.flags import etcd_flags

_flags = Flags("HQ_")
option = _flags.option

listening = together(
    option(
        "--grpc",
        default="127.0.0.1:7071",
        metavar="HOST:PORT",
        help="Address to serve on; port 0: a free one. Every address answers gRPC, Connect and plain HTTP.",
    ),
    option(
        "--http",
        default="127.0.0.1:7080",
        metavar="HOST:PORT",
        help="Second address to serve on; may be the same.",
    ),
    option(
        "--agents",
        default=None,
        metavar="HOST:PORT",
        help="Listener for agents only, with limits of its own; empty: none."
        "  [default: port 7072 beside --grpc's 7071, else none]",
    ),
    _flags.transport(),
    _flags.cors(),
    option(
        "--insecure",
        is_flag=True,
        help="Serve on non-loopback addresses without TLS or authentication.",
    ),
)

security = settings.flags(_flags)

workers = together(
    option(
        "--workers",
        type=click.IntRange(1, 64),
        default=1,
        help="Number of processes sharing the ports, each a full replica with all data in memory.",
    ),
    option(
        "--worker-pages",
        default="",
        metavar="HOST:PORT",
        help="With several workers: also serve /metrics and health here, the next worker one port higher.",
    ),
    click.option("--worker", type=int, default=None, hidden=True),  # which one this is; said by who minds it
)

behaviour = together(
    option("--cluster", default="default", help="Name of this installation, set on every instance."),
    option("--prefix", default="/hq/v1/", help="Prefix of all keys of HQ in the store."),
    option("--replica", default="", help="Name of this process, never reused; default: generated."),
    option(
        "--liveness-timeout",
        type=Duration(),
        default="10m",
        help="Mark a revision not ready after this long without a report.",
    ),
    option(
        "--report-interval",
        type=Duration(),
        default=None,
        help="How often agents should report.  [default: 3m, or 3/10 of a shorter timeout]",
    ),
    option(
        "--heartbeat-batches",
        type=click.FloatRange(1, 1_000),
        default=50.0,
        help="Most batches of heartbeats to store per second; 5 are used above 5,000 heartbeats per second.",
    ),
    option(
        "--guard-share",
        type=click.FloatRange(0, 1),
        default=0.2,
        help="Hold expiries for one timeout if more than this share of revisions is silent.",
    ),
    option(
        "--compact-every",
        type=Duration(),
        default="5m",
        help="How often to compact etcd's history; 0s: never.",
    ),
    option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)

limits = together(
    option(
        "--history-bytes", type=Bytes(), default="128MiB", help="Memory for recent changes, from which watches resume."
    ),
    option(
        "--watch-buffer",
        type=Bytes(),
        default="256MiB",
        help="Memory for unread changes of all watches (one watch: a sixteenth); beyond it a watch must resync.",
    ),
    option("--page-bytes", type=Bytes(), default="3MiB", help="Largest page of FindInstances."),
    option("--json-bytes", type=Bytes(), default="64MiB", help="Memory for instances cached as JSON."),
    option(
        "--max-store-bytes",
        type=Bytes(),
        default="1536MiB",
        help="Refuse writes that add data above this size of live records. Use 3/4 of etcd's quota; 0: no limit.",
    ),
    _flags.limits(),
)

logs = _flags.logs()

etcd = etcd_flags(_flags)
