"""What the flags of etcd say, for every command that speaks with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from store.etcd import EtcdConfig


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
