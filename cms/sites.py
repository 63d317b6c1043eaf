"""The sites of hosts and the domain limits, in YAML.

hosts:
  node-1: {dc: ams-1, rack: r1, switch: s1}
limits:
  one-rack-per-dc: {kind: rack, most: 1, within: {dc: ams-1}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cms.ledger.limits import KINDS, DomainLimit, DomainLimits, Site
from serving import yamltext
from serving.auth.watched_files import BadSecurity, WatchedFiles

_PLACES: Final = ("dc", "rack", "switch", "project")
BUSY_HOSTS: Final = "max-busy-hosts"


class BadSites(Exception):
    """The file is invalid; str() says what is wrong, and where."""


def sites_file(path: Path, max_busy_hosts: int = 0) -> WatchedFiles[DomainLimits]:
    """The file, read again when it changes. Raises BadSecurity."""

    def parse_contents(text: bytes) -> DomainLimits:
        try:
            return parse_sites(text.decode(), max_busy_hosts)
        except (BadSites, UnicodeDecodeError) as error:
            raise BadSecurity(str(error)) from error

    return WatchedFiles("sites", (path,), lambda contents: parse_contents(contents[0]))


def parse_sites(text: str, max_busy_hosts: int = 0) -> DomainLimits:
    """Sites and limits. Raises BadSites."""
    try:
        loaded = yamltext.load(text) if text.strip() else {}
    except yamltext.BadYaml as error:
        raise BadSites(f"is not valid YAML: {error}") from None
    listed = _mapping(loaded, "the file")
    _check_names(listed, "the file", ("hosts", "limits"))
    sites = {str(host): _site(str(host), site) for host, site in _mapping(listed.get("hosts"), "hosts").items()}
    limits = [_limit(str(name), said) for name, said in _mapping(listed.get("limits"), "limits").items()]
    if max_busy_hosts:
        limits.append(DomainLimit(BUSY_HOSTS, "host", max_busy_hosts))
    return DomainLimits(limits, sites)


def _site(host: str, said: object) -> Site:
    where = f"hosts.{host}"
    place = _mapping(said, where)
    _check_names(place, where, _PLACES)
    return Site(**{name: _word(value, f"{where}.{name}") for name, value in place.items()})


def _limit(name: str, said: object) -> DomainLimit:
    where = f"limits.{name}"
    limit = _mapping(said, where)
    _check_names(limit, where, ("kind", "most", "within"))
    kind, most = limit.get("kind"), limit.get("most")
    if kind not in KINDS:
        raise BadSites(f"{where}.kind: write one of {', '.join(KINDS)}")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise BadSites(f"{where}.most: write a number of at least 1")
    within = _mapping(limit.get("within"), f"{where}.within")
    _check_names(within, f"{where}.within", _PLACES)
    return DomainLimit(name, kind, most, {key: _word(value, f"{where}.within.{key}") for key, value in within.items()})


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadSites(f"{where}: write a mapping")
    return value


def _check_names(found: Mapping[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in found:
        if name not in names:
            raise BadSites(f"{where}.{name}: unknown setting; known settings: {', '.join(names)}")


def _word(value: object, where: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise BadSites(f"{where}: write a name")
    return str(value)
