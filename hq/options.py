"""Flags of the commands. Each is also an environment variable: `--liveness-timeout` is HQ_LIVENESS_TIMEOUT."""

from __future__ import annotations

import click

from serving.auth import settings
from serving.flags import Bytes, Duration, Flags, together

_flags = Flags("HQ_")
option = _flags.option

listening = together(
    option(
        "--grpc",
        default="127.0.0.1:7071",
        metavar="HOST:PORT",
        help="Where to serve; port 0: a free one. Every address answers gRPC, Connect and plain HTTP.",
    ),
    option(
        "--http",
        default="127.0.0.1:7080",
        metavar="HOST:PORT",
        help="A second address, which may be the same one.",
    ),
    option(
        "--agents",
        default=None,
        metavar="HOST:PORT",
        help="A listener for agents alone, with limits that other callers cannot use up; empty: none."
        "  [default: port 7072 beside --grpc's 7071, else none]",
    ),
    _flags.transport(),
    _flags.cors(),
    option(
        "--insecure",
        is_flag=True,
        help="Serve on other than loopback addresses although nothing is encrypted and nobody is asked who they are.",
    ),
)

security = settings.flags(_flags)

workers = together(
    option(
        "--workers",
        type=click.IntRange(1, 64),
        default=1,
        help="Processes on the same ports, each a whole replica with everything in its memory: for more than one core.",
    ),
    option(
        "--worker-pages",
        default="",
        metavar="HOST:PORT",
        help="With several workers: the first one serves /metrics and health here too, the next one a port higher.",
    ),
    click.option("--worker", type=int, default=None, hidden=True),  # which one this is; said by who minds it
)

behaviour = together(
    option("--cluster", default="default", help="Name of this installation; every instance bears it."),
    option("--prefix", default="/hq/v1/", help="All keys of HQ in the store begin with it."),
    option("--replica", default="", help="Name of this process, unlike any other ever; default: made up."),
    option(
        "--liveness-timeout",
        type=Duration(),
        default="10m",
        help="Silence for so long makes a revision not ready.",
    ),
    option(
        "--report-interval",
        type=Duration(),
        default=None,
        help="How often agents are told to report.  [default: 3m, or 3/10 of a shorter timeout]",
    ),
    option(
        "--guard-share",
        type=click.FloatRange(0, 1),
        default=0.2,
        help="More silent revisions than this share, and flips are held back for one timeout.",
    ),
    option(
        "--compact-every",
        type=Duration(),
        default="5m",
        help="Compact the store's history so often; 0s: never.",
    ),
    option("--grace", type=Duration(), default="5s", help="How long calls may go on when it is told to stop."),
)

limits = together(
    option("--history-bytes", type=Bytes(), default="128MiB", help="Changes kept for watches to resume from."),
    option(
        "--watch-buffer",
        type=Bytes(),
        default="256MiB",
        help="What all watchers together may leave unread, one of them a sixteenth, before RESYNC.",
    ),
    option("--page-bytes", type=Bytes(), default="3MiB", help="Most that one answer of FindInstances holds."),
    option("--json-bytes", type=Bytes(), default="64MiB", help="Instances kept as JSON."),
    option(
        "--max-store-bytes",
        type=Bytes(),
        default="1536MiB",
        help="Live records in the store; at that, what adds more is refused. Take 3/4 of etcd's quota; 0: no limit.",
    ),
    _flags.limits(),
)

logs = _flags.logs()

etcd = together(
    option(
        "--etcd",
        required=True,
        metavar="HOST:PORT[,HOST:PORT...]",
        help="Members of etcd, any order; comma-separated.",
    ),
    option("--etcd-ca", default="", metavar="FILE", help="Trust this CA, and speak TLS with etcd."),
    option("--etcd-cert", default="", metavar="FILE", help="Client certificate for etcd."),
    option("--etcd-key", default="", metavar="FILE", help="Its key."),
    option("--etcd-user", default="", help="User for etcd's own authentication."),
    option("--etcd-password-file", default="", metavar="FILE", help="File that holds the user's password."),
)
