"""Flags of `cms serve` and `cms dev`. Each is also an environment variable: `--hq-ca` is CMS_HQ_CA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from cms.desk import Settings
from cms.ledger.book import Book, Rules
from cms.ledger.budgets import Budgets
from cms.ledger.limits import Limits
from cms.sites import parse_sites, sites_file
from control.amounts import Amount
from control.process import dev_flags, kit_flags
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from serving.auth import security as settings
from serving.auth.watched_files import BadSecurity, WatchedFiles
from serving.flags import Duration, Flags, is_loopback, together
from serving.storage.flags import etcd_flags

FLAGS: Final = Flags("CMS_")
_option = FLAGS.option
_KEYS: Final = ("ca", "cert", "key", "token_file")

etcd: Final = etcd_flags(FLAGS)
listening: Final = together(
    _option("--grpc", default="127.0.0.1:7271", metavar="HOST:PORT", help="Address to serve on; port 0: a free one."),
    _option("--http", default="127.0.0.1:7280", metavar="HOST:PORT", help="Second address to serve on."),
    FLAGS.transport(),
    FLAGS.cors(),
    _option("--insecure", is_flag=True, help="Use non-loopback addresses without TLS or authentication."),
)
security: Final = settings.flags(FLAGS)
world: Final = together(
    _option(
        "--location",
        multiple=True,
        metavar="NAME=HOST:PORT,...",
        help="An installation of HQ and its replicas; repeatable.  [default: default=127.0.0.1:7071]",
    ),
    _option("--hq-ca", default="", metavar="FILE", help="Use TLS with HQ and trust this CA (PEM)."),
    _option("--hq-cert", default="", metavar="FILE", help="Client certificate of the CMS for HQ (PEM)."),
    _option("--hq-key", default="", metavar="FILE", help="Its key (PEM)."),
    _option("--hq-token-file", default="", metavar="FILE", help="File with the CMS's own token for HQ."),
    _option(
        "--sites",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Where hosts stand (dc, rack, switch) and how many domains may be under work at once (YAML, reloaded).",
    ),
)
behaviour: Final = together(
    kit_flags(FLAGS, "/cms/v1/"),
    _option("--default-budget", default="10%", metavar="AMOUNT", help="max_unavailable of services without a budget."),
    _option("--max-busy-hosts", default=0, type=click.IntRange(0), help="Hosts under work at once; 0: any number."),
    _option(
        "--task-issuer",
        multiple=True,
        metavar="NAME",
        help="Issuer that must declare its running work after a restore, before anything is granted; repeatable.",
    ),
    _option("--settle", type=Duration(), default="5s", help="Decide a group once no task has joined it for this long."),
    _option(
        "--pass-after",
        type=Duration(),
        default="10m",
        help="A task that waits for something broken lets later ones pass after this time.",
    ),
    _option("--lapse", type=Duration(), default="2m", help="A provisional ok lapses after this long without a poll."),
    _option("--fence", type=Duration(), default="1s", help="How long a location has to prove that it is up to date."),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)
dev: Final = dev_flags(FLAGS, ".cms")
limits: Final = FLAGS.limits()
logs: Final = FLAGS.logs()


def settings_of(given: Mapping[str, Any]) -> Settings:
    """What the desk is told."""
    return Settings(tuple(given["task_issuer"]), given["fence"])


def book_of(given: Mapping[str, Any], sites: WatchedFiles[Limits] | None) -> Book:
    """An empty ledger with the rules, sites and limits that were given. Raises UsageError."""
    rules = Rules(settle_s=given["settle"], pass_s=given["pass_after"], lapse_s=given["lapse"])
    try:
        default = Amount.parse(given["default_budget"])
    except ValueError as error:
        raise click.UsageError(f"--default-budget: {error}") from error
    book = Book.empty(rules, locations_of(given), Budgets(default=default))
    book.limit(sites.current if sites else parse_sites("", given["max_busy_hosts"]))
    return book


def sites_of(given: Mapping[str, Any]) -> WatchedFiles[Limits] | None:
    """The file of sites. Raises UsageError."""
    try:
        return sites_file(given["sites"], given["max_busy_hosts"]) if given["sites"] else None
    except BadSecurity as error:
        raise click.UsageError(str(error)) from error


def clients_of(given: Mapping[str, Any]) -> dict[str, Client]:
    """A client for each location. Raises UsageError."""
    files = CredentialFiles(*(given[f"hq_{name}"] for name in _KEYS))
    addresses = locations_of(given)
    _check_plain([one for each in addresses.values() for one in each], files, given)
    try:
        credentials = Credentials(files)
        return {name: Client(each, credentials=credentials) for name, each in addresses.items()}
    except (BadCredentials, ValueError) as error:
        raise click.UsageError(str(error)) from error


def locations_of(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Replicas of each location, by name. Raises UsageError."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given["location"] or ("default=127.0.0.1:7071",):
        name, _, addresses = text.partition("=")
        replicas = tuple(one.strip() for one in addresses.split(",") if one.strip())
        if not name or not replicas or name in found:
            raise click.UsageError(f"--location {text}: write NAME=HOST:PORT[,HOST:PORT...], each name once")
        found[name] = replicas
    return found


def _check_plain(addresses: list[str], files: CredentialFiles, given: Mapping[str, Any]) -> None:
    outside = [one for one in addresses if not is_loopback(one)]
    if outside and not files.ca and not given["insecure"]:
        raise click.UsageError(f"{outside[0]} would be spoken to in plain text: give --hq-ca for TLS, or --insecure")
