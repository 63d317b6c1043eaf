"""Users of etcd: a server opens its own records only. Each is the common name of a certificate of etcd's CA."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hq.backup.servers import CMS, HQ, NANNY, WALLE
from hq.installation.plan import BadPlan, InstallationPlan
from serving.auth.watched_files import BadSecurity
from serving.storage.tls import EtcdTls
from store.etcd import EtcdConfig, EtcdStore
from store.etcd_errors import Answered
from store.keys import Keys
from store.port import StoreError, Unavailable

# By the last part of the identity in a certificate: the server's folder in /etc, and whose records it opens.
_CONTROLLERS: Final = {"cms": ("hq-cms", CMS), "nanny": ("hq-nanny", NANNY), "wall-e": ("hq-walle", WALLE)}
_BARRED: Final = re.compile("permission denied|user name|certificate", re.IGNORECASE)  # in what etcd or TLS says
_REFUSED, _AWAY, _NOT_ALLOWED = 1, 5, 7  # the exit codes of all commands for these
_LONGEST_NAME: Final = 64  # of a common name (X.509)


def prefixes_of(folder: Path, plan: InstallationPlan) -> dict[str, str]:
    """By user, the prefix of its keys, as the settings in the folder say. Raises BadPlan, OSError."""
    found = {}
    for name, (etc, server) in _CONTROLLERS.items():
        user = _user(plan, name)
        if len(user) > _LONGEST_NAME:
            raise BadPlan(
                f"trust_domain: {user} is too long for a user of etcd, {_LONGEST_NAME} characters: keep it whole"
            )
        settings = _etc(folder, plan, etc) / f"{server.name}.env"
        setting = f"{server.name.upper()}_PREFIX"
        try:
            given = _setting(settings.read_text(), setting) or server.prefix  # empty is none, as for the server
        except ValueError as error:
            raise BadPlan(f"{settings}: {setting}: {error}: write it in one line") from None
        if not given.strip("/"):
            raise BadPlan(f"{settings}: {setting}: {given} would open all records: name a prefix of its own")
        found[user] = Keys(given).prefix.decode()
    return found


def _setting(text: str, name: str) -> str:
    """A setting in an EnvironmentFile of systemd; empty: it has none. Raises ValueError: a quote is open."""
    found = ""
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            found = " ".join(shlex.split(value))  # the last one counts
    return found


async def divide(folder: Path, plan: InstallationPlan, parts: Mapping[str, str]) -> None:
    """Divide etcd among its users, with the certificate of a replica. Raises BadSecurity, StoreError."""
    etc = _etc(folder, plan, "hq")
    tls = EtcdTls(str(etc / "etcd-ca.crt"), str(etc / "etcd.crt"), str(etc / "etcd.key"), time.monotonic)
    store = EtcdStore(EtcdConfig(tuple(f"{address}:2379" for address in plan.etcd.values()), tls))
    try:
        await store.divide(_user(plan, HQ.name), {user: prefix.encode() for user, prefix in parts.items()})
    finally:
        await store.close()


def next_step(error: StoreError | BadSecurity, folder: Path, plan: InstallationPlan) -> tuple[int, str]:
    """Return the exit code and the next step after `divide` failed. Waiting helps only with code 5."""
    shown = _etc(folder, plan, "hq") / "etcd.crt"
    if isinstance(error, BadSecurity):
        return _NOT_ALLOWED, f"run `hq init {folder}`"
    if _BARRED.search(str(error)):
        who = _user(plan, HQ.name)
        return _NOT_ALLOWED, f"{shown} must be of the CA that etcd trusts, and {who} a user with the role root"
    if isinstance(error, Unavailable) and not isinstance(error, Answered):
        return _AWAY, f"start etcd, run `hq init {folder}`, and try again"
    return _REFUSED, "do what etcd says, and try again"


def _user(plan: InstallationPlan, name: str) -> str:
    return f"spiffe://{plan.trust_domain}/{name}"


def _etc(folder: Path, plan: InstallationPlan, name: str) -> Path:
    return folder / "machines" / next(iter(plan.hq)) / "etc" / name
