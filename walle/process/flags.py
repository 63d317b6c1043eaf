"""Flags of `walle serve` and `walle dev`. Each is also an environment variable: `--etcd` is WALLE_ETCD."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from control.process import dev_flags, kit_flags
from serving.auth import security as settings
from serving.flags import Duration, Flags, together
from serving.storage.flags import etcd_flags

FLAGS: Final = Flags("WALLE_")
_option = FLAGS.option

listening = together(
    _option("--grpc", default="127.0.0.1:7471", metavar="HOST:PORT", help="Address to serve on; port 0: a free one."),
    _option("--http", default="127.0.0.1:7480", metavar="HOST:PORT", help="Second address to serve on."),
    FLAGS.transport(),
    FLAGS.cors(),
    _option("--insecure", is_flag=True, help="Serve on non-loopback addresses without TLS or authentication."),
)

security = settings.flags(FLAGS)

behaviour = together(
    kit_flags(FLAGS, "/walle/v1/"),
    _option(
        "--config", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Limits, executors (YAML)."
    ),
    _option(
        "--installation",
        default="default",
        help="Name of this installation, in the ids of its tasks in CMS's. Unique among all that share a CMS.",
    ),
    _option("--settle", type=Duration(), default="5m", help="How long a check must fail before it counts."),
    _option("--hq", default="", metavar="HOST:PORT[,...]", help="Replicas of HQ, or federation gateways; empty: none."),
    _option("--hq-ca", default="", metavar="FILE", help="Use TLS with HQ and trust this CA (PEM)."),
    _option("--hq-cert", default="", metavar="FILE", help="Client certificate for HQ (PEM)."),
    _option("--hq-key", default="", metavar="FILE", help="Its key (PEM)."),
    _option("--hq-token-file", default="", metavar="FILE", help="File with the token for HQ."),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)

etcd = etcd_flags(FLAGS)
trying = dev_flags(FLAGS, ".walle")
