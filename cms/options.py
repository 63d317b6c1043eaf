"""Flags of `cms serve` and `cms dev`. Each is also an environment variable: `--hq-ca` is CMS_HQ_CA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from cms.desk import CmsSettings
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budgets
from cms.ledger.limits import DomainLimits
from cms.sites import parse_sites, sites_file
from control.amounts import Amount
from control.locations import location_flags, locations_of
from control.process import dev_flags, kit_flags, listening_flags
from serving.auth import security as settings
from serving.auth.watched_files import BadSecurity, WatchedFiles
from serving.flags import Duration, Flags, InputFile, together, usage_errors
from serving.rights.patterns import IdentityPattern
from serving.storage.flags import etcd_flags

FLAGS: Final = Flags("CMS_")
_decisions: Final = FLAGS.under("Decisions")
DEFAULT_LOCATION: Final = "default=127.0.0.1:7071"

etcd: Final = etcd_flags(FLAGS)
listening: Final = listening_flags(FLAGS, "127.0.0.1:7271", "127.0.0.1:7280")
security: Final = settings.flags(FLAGS, "cms")
world: Final = together(
    location_flags(FLAGS, f"  [default: {DEFAULT_LOCATION}]"),
    _decisions.option(
        "--sites",
        type=InputFile(Path),
        metavar="FILE",
        help="Where hosts stand (dc, rack, switch) and how many domains may be under work at once (YAML, reloaded).",
    ),
)
behaviour: Final = together(
    _decisions.option(
        "--default-budget", default="10%", metavar="AMOUNT", help="max_unavailable of services without a budget."
    ),
    _decisions.option(
        "--max-busy-hosts", default=0, type=click.IntRange(0), help="Hosts under work at once; 0: any number."
    ),
    _decisions.option(
        "--task-issuer",
        multiple=True,
        metavar="NAME=IDENTITY",
        help="Issuer that must declare its running work after a restore, before anything is granted, and who may speak "
        "for it, as --policy knows it; repeatable. Without --policy: NAME.",
    ),
    _decisions.option(
        "--healer",
        multiple=True,
        metavar="NAME=IDENTITY",
        help="Issuer whose tasks are repairs if they name a failure or an instance that is not ready, and who may "
        "speak for it; repeatable. Repairs go first and need no window.",
    ),
    _decisions.option(
        "--rollout-issuer",
        multiple=True,
        metavar="NAME=IDENTITY",
        help="Issuer whose roll-backs are urgent and whose roll-outs need not count on lost instances, and who may "
        "speak for it; repeatable.",
    ),
    _decisions.option(
        "--settle", type=Duration(), default="5s", help="Decide a group once no task has joined it for this long."
    ),
    _decisions.option(
        "--pass-after",
        type=Duration(),
        default="10m",
        help="A task that waits for something broken lets later ones pass after this time.",
    ),
    _decisions.option(
        "--reboot-away",
        type=Duration(),
        default="10m",
        help="How long a reboot takes a host away at most: compared with `within` of a budget's brief work.",
    ),
    _decisions.option(
        "--lapse", type=Duration(), default="2m", help="A provisional ok lapses after this long without a poll."
    ),
    _decisions.option(
        "--fence", type=Duration(), default="1s", help="How long a location has to prove that it is up to date."
    ),
    kit_flags(FLAGS, "/cms/v1/"),
)
dev: Final = dev_flags(FLAGS, ".cms")
limits: Final = FLAGS.limits()
logs: Final = FLAGS.logs()


def settings_of(given: Mapping[str, Any]) -> CmsSettings:
    """Make the desk's settings of the flags. Raises UsageError."""
    return CmsSettings(
        _issuers(given, "task_issuer"), given["fence"], _issuers(given, "healer"), _issuers(given, "rollout_issuer")
    )


def _issuers(given: Mapping[str, Any], option: str) -> dict[str, list[IdentityPattern]]:
    """Issuers of an option, and who may speak for each. Raises UsageError."""
    issuers: dict[str, list[IdentityPattern]] = {}
    flag = f"--{option.replace('_', '-')}"
    for word in given.get(option, ()):
        name, _, identity = word.partition("=")
        if given.get("policy") and not (name and identity):
            raise click.UsageError(
                f"{flag} {word}: names nobody who may speak for it: "
                f"write {flag} {name or 'NAME'}=IDENTITY, with the identity as --policy knows it"
            )
        try:
            issuers.setdefault(name, []).extend([IdentityPattern(identity)] if identity else [])
        except ValueError as error:
            raise click.UsageError(f"{flag} {word}: {error}") from error
    return issuers


def book_of(given: Mapping[str, Any], sites: WatchedFiles[DomainLimits] | None) -> TaskLedger:
    """An empty ledger with the rules, sites and limits that were given. Raises UsageError."""
    rules = Rules(
        settle_s=given["settle"], pass_s=given["pass_after"], lapse_s=given["lapse"], reboot_away_s=given["reboot_away"]
    )
    try:
        default = Amount.parse(given["default_budget"])
    except ValueError as error:
        raise click.UsageError(f"--default-budget: {error}") from error
    book = TaskLedger.empty(rules, locations_of(given, DEFAULT_LOCATION), Budgets(default=default))
    book.limit(sites.current if sites else parse_sites("", given["max_busy_hosts"]))
    return book


@usage_errors(BadSecurity)
def sites_of(given: Mapping[str, Any]) -> WatchedFiles[DomainLimits] | None:
    """The file of sites. Raises UsageError."""
    return sites_file(given["sites"], given["max_busy_hosts"]) if given["sites"] else None
