"""The flags of etcd, and what they say, for every command that speaks with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from serving.flags import Flags, together
from store.etcd import EtcdConfig

F = TypeVar("F", bound=Callable[..., Any])


def etcd_flags(flags: Flags) -> Callable[[F], F]:
    """Where etcd is, and how to get in. Their variables have the command's prefix."""
    option = flags.option
    return together(
        option("--etcd", required=True, metavar="HOST:PORT[,HOST:PORT...]", help="Members of etcd, comma-separated."),
        option("--etcd-ca", default="", metavar="FILE", help="Use TLS with etcd and trust this CA (PEM)."),
        option("--etcd-cert", default="", metavar="FILE", help="Client certificate for etcd."),
        option("--etcd-key", default="", metavar="FILE", help="Its key."),
        option("--etcd-user", default="", help="User for etcd authentication."),
        option("--etcd-password-file", default="", metavar="FILE", help="File with the user's password."),
    )


def etcd_config(given: dict[str, Any]) -> EtcdConfig:
    """Raises UsageError for a list of no members, OSError for a password that cannot be read."""
    password_file = given["etcd_password_file"]
    return EtcdConfig(
        endpoints=_endpoints(given["etcd"]),
        ca=given["etcd_ca"],
        cert=given["etcd_cert"],
        key=given["etcd_key"],
        user=given["etcd_user"],
        password=Path(password_file).read_text().strip() if password_file else "",
    )


def endpoint(text: str) -> str:
    """host:port; people paste URLs from etcd's own flags."""
    return text.strip().removeprefix("http://").removeprefix("https://").rstrip("/")


def _endpoints(text: str) -> tuple[str, ...]:
    found = tuple(endpoint(part) for part in text.split(",") if part.strip())
    if not found:
        raise click.UsageError("--etcd is empty: write HOST:PORT[,HOST:PORT...]")
    return found
