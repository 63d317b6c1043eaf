"""Flags of `walle serve` and `walle dev`. Each is also an environment variable: `--etcd` is WALLE_ETCD."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from serving.auth import settings
from serving.flags import Duration, Flags, together
from store.etcd import EtcdConfig

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
    _option(
        "--config", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Limits, executors (YAML)."
    ),
    _option(
        "--installation",
        default="default",
        help="Name of this installation, in the ids of its tasks in CMS's. Unique among all that share a CMS.",
    ),
    _option("--prefix", default="/walle/v1/", help="Prefix of all keys of Wall-E in the store."),
    _option("--settle", type=Duration(), default="5m", help="How long a check must fail before it counts."),
    _option("--hq", default="", metavar="HOST:PORT[,...]", help="Replicas of HQ, or federation gateways; empty: none."),
    _option("--hq-ca", default="", metavar="FILE", help="Use TLS with HQ and trust this CA (PEM)."),
    _option("--hq-cert", default="", metavar="FILE", help="Client certificate for HQ (PEM)."),
    _option("--hq-key", default="", metavar="FILE", help="Its key (PEM)."),
    _option("--hq-token-file", default="", metavar="FILE", help="File with the token for HQ."),
    _option(
        "--stop-file",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help="While this file exists, nothing begins at this process; works without the store.",
    ),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)

etcd = together(
    _option("--etcd", required=True, metavar="HOST:PORT[,HOST:PORT...]", help="Members of etcd, comma-separated."),
    _option("--etcd-ca", default="", metavar="FILE", help="Use TLS with etcd and trust this CA (PEM)."),
    _option("--etcd-cert", default="", metavar="FILE", help="Client certificate for etcd."),
    _option("--etcd-key", default="", metavar="FILE", help="Its key."),
    _option("--etcd-user", default="", help="User for etcd authentication."),
    _option("--etcd-password-file", default="", metavar="FILE", help="File with the user's password."),
    _option(
        "--compact-every",
        type=Duration(),
        default="5m",
        help="Interval of compacting the store's history; 0s: the etcd is another's, who does it.",
    ),
)


def etcd_config(given: dict[str, Any]) -> EtcdConfig:
    """Raises UsageError for a list of no members, OSError for a password that cannot be read."""
    members = [
        part.strip().removeprefix("http://").removeprefix("https://").rstrip("/") for part in given["etcd"].split(",")
    ]
    if not all(members):
        raise click.UsageError("--etcd: write HOST:PORT[,HOST:PORT...]")
    file = given["etcd_password_file"]
    return EtcdConfig(
        endpoints=tuple(members),
        ca=given["etcd_ca"],
        cert=given["etcd_cert"],
        key=given["etcd_key"],
        user=given["etcd_user"],
        password=Path(file).read_text().strip() if file else "",
    )
