"""Flags of the commands. Each is also an environment variable: `--liveness-timeout` is HQ_LIVENESS_TIMEOUT."""

from __future__ import annotations

from typing import Final

import click

from serving.auth import security as settings
from serving.flags import OWN_ADDRESS, Bytes, Duration, Flags, together
from serving.storage.flags import etcd_flags

flags: Final = Flags("HQ_")
_listening, _storage = flags.under("Listening"), flags.under("Storage")
_liveness, _processes = flags.under("Liveness"), flags.under("Processes")
_memory, _limits = flags.under("Memory"), flags.under("Limits")

listening = together(
    _listening.option(
        "--grpc",
        default="127.0.0.1:7071",
        type=OWN_ADDRESS,
        metavar="HOST:PORT",
        help="Address to serve on; port 0: a free one. Every address answers gRPC, Connect and plain HTTP.",
    ),
    _listening.option(
        "--http",
        default="127.0.0.1:7080",
        type=OWN_ADDRESS,
        metavar="HOST:PORT",
        help="Second address to serve on; may be the same.",
    ),
    _listening.option(
        "--agents",
        default=None,
        type=OWN_ADDRESS,
        metavar="HOST:PORT",
        help="Listener for agents only, with limits of its own; empty: none."
        "  [default: port 7072 beside --grpc's 7071, else none]",
    ),
    flags.cors(),
    flags.allowed_hosts(),
    flags.gone_transport(),
    _listening.option(
        "--insecure",
        is_flag=True,
        help="Serve on non-loopback addresses without TLS or authentication.",
    ),
)

security = settings.flags(flags, "hq")

workers = together(
    _processes.option(
        "--workers",
        type=click.IntRange(1, 64),
        default=1,
        help="Number of processes sharing the ports, each a full replica with all data in memory.",
    ),
    _processes.option(
        "--worker-pages",
        default="",
        type=OWN_ADDRESS,
        metavar="HOST:PORT",
        help="With several workers: also serve /metrics and health here, the next worker one port higher.",
    ),
    click.option("--worker", type=int, default=None, hidden=True),  # which one this is; set by the parent process
)

behaviour = together(
    _liveness.option(
        "--liveness-timeout",
        type=Duration(),
        default="10m",
        help="Mark a revision not ready after this long without a report.",
    ),
    _liveness.option(
        "--report-interval",
        type=Duration(),
        default=None,
        help="How often agents should report.  [default: 3m, or 3/10 of a shorter timeout]",
    ),
    _liveness.option(
        "--heartbeat-batches",
        type=click.FloatRange(1, 1_000),
        default=50.0,
        help="Store heartbeats in at most this many batches per second. From 5,000 heartbeats per second on at most 5.",
    ),
    _liveness.option(
        "--guard-share",
        type=click.FloatRange(0, 1),
        default=0.2,
        help="Hold expiries for one timeout if more than this share of revisions is silent; "
        "ignored below 20 revisions or 3 nodes.",
    ),
    _processes.option("--cluster", default="default", help="Name of this installation, set on every instance."),
    _storage.option("--prefix", default="/hq/v1/", help="Prefix of all keys of HQ in the store."),
    _processes.option("--replica", default="", help="Name of this process, never reused; default: generated."),
    _storage.option(
        "--compact-every",
        type=Duration(),
        default="5m",
        help="How often to compact etcd's history; 0s: never.",
    ),
    _processes.option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)

limits = together(
    _memory.option(
        "--history-bytes", type=Bytes(), default="128MiB", help="Memory for recent changes, from which watches resume."
    ),
    _memory.option(
        "--watch-buffer",
        type=Bytes(),
        default="256MiB",
        help="Memory for unread changes of all watches (one watch: a sixteenth); beyond it a watch must resync.",
    ),
    _limits.option("--page-bytes", type=Bytes(), default="3MiB", help="Largest page of FindInstances."),
    _memory.option("--json-bytes", type=Bytes(), default="64MiB", help="Memory for instances cached as JSON."),
    _storage.option(
        "--max-store-bytes",
        type=Bytes(),
        default="1536MiB",
        help="Refuse writes that add data once live records have this size. Use 3/4 of etcd's quota; 0: no limit.",
    ),
    flags.limits(agents=True),
)

logs = flags.logs()

etcd = etcd_flags(flags)
state = _storage.option(
    "--state-dir",
    default="",
    metavar="DIR",
    help="At an orderly stop keep what memory holds here, so that the next start need not read everything.",
)
data = _storage.option("--data", default=".hq", metavar="DIR", help="Data directory of the embedded etcd.")
store = _storage.option(
    "--store", type=click.Choice(["etcd", "memory"]), default="etcd", help="memory: nothing is kept after exit."
)
