"""Flags of every command that talks to etcd, and the configuration made from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from hqclient.connecting import find_cause
from hqclient.credential_files import CredentialFiles
from serving.auth.watched_files import BadSecurity
from serving.flags import AddressParam, F, Flags, InputFile, together, usage_errors
from serving.storage.tls import EtcdTls
from store.etcd import EtcdConfig


def etcd_flags(flags: Flags) -> Callable[[F], F]:
    """Which etcd, and how to talk to it."""
    option = flags.under("Storage").option
    return together(
        option(
            "--etcd",
            required=True,
            type=AddressParam(may_be_url=True),
            metavar="HOST:PORT[,HOST:PORT...]",
            help="Members of etcd, comma-separated.",
        ),
        option(
            "--etcd-ca", default="", type=InputFile(), metavar="FILE", help="Use TLS with etcd and trust this CA (PEM)."
        ),
        option("--etcd-cert", default="", type=InputFile(), metavar="FILE", help="Client certificate for etcd."),
        option("--etcd-key", default="", type=InputFile(), metavar="FILE", help="Its key."),
        option("--etcd-user", default="", help="User for etcd authentication."),
        option(
            "--etcd-password-file", default="", type=InputFile(), metavar="FILE", help="File with the user's password."
        ),
    )


def etcd_config(given: Mapping[str, Any]) -> EtcdConfig:
    """Raises UsageError: the list of members is empty, or a file cannot be used."""
    ca, cert, key = given["etcd_ca"], given["etcd_cert"], given["etcd_key"]
    return EtcdConfig(
        endpoints=_endpoints(given["etcd"]),
        credentials=_etcd_tls(ca, cert, key),
        user=given["etcd_user"],
        password=_password(given["etcd_password_file"]),
        find_cause=partial(find_cause, files=CredentialFiles(ca, cert, key), prefix="--etcd-"),
    )


def _password(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip() if file else ""
    except OSError as error:
        fault = f"cannot be read: {error.strerror}: give a file that this user can read"
    except UnicodeDecodeError:
        fault = "is not UTF-8: give a text file with the password alone"
    raise click.UsageError(f"--etcd-password-file {file}: {fault}")


@usage_errors(BadSecurity)
def _etcd_tls(ca: str, cert: str, key: str) -> EtcdTls | None:
    if (cert or key) and not ca:
        raise click.UsageError("--etcd-cert and --etcd-key have no effect without TLS: give --etcd-ca")
    return EtcdTls(ca, cert, key, time.monotonic) if ca else None


def endpoint(text: str) -> str:
    """host:port; people paste URLs from etcd's own flags."""
    return text.strip().removeprefix("http://").removeprefix("https://").rstrip("/")


def _endpoints(text: str) -> tuple[str, ...]:
    found = tuple(endpoint(part) for part in text.split(",") if part.strip())
    if not found:
        raise click.UsageError("--etcd is empty: write HOST:PORT[,HOST:PORT...]")
    return found
