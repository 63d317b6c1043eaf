"""The configuration file (YAML): global limits, executors, destinations, recipients. Secrets are files."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from serving import yamltext
from serving.rights.patterns import Patterns
from walle.executors.command import CommandConfig
from walle.executors.dns import Dns, DnsConfig
from walle.executors.over_http import RedfishConfig
from walle.executors.values import check_argument, fields_in
from walle.fuses.limits import GLOBAL_NAMES, BadLimit, Limits, parse_limit
from walle.notices import SmtpServer, why_not_notified
from walle.outgoing.destinations import AllowedEndpoint, CmsEndpoint, Controllers, Destinations, parse_url
from walle.process.fields import BadConfig, Folder, check_names, read_all, read_fields
from walle.tables import KINDS
from wallepb.v1.host_pb2 import OperationKind
from wallepb.v1.project_pb2 import Recipient, Severity

SECTIONS: Final = (
    "automation",
    "agent_checks",
    "executors",
    "operations",
    "redfish",
    "cms",
    "notify",
    "smtp",
    "notifications",
)
ExecutorConfig = RedfishConfig | CommandConfig | AllowedEndpoint | DnsConfig | None
_KINDS: Final[Mapping[str, type[Any] | None]] = {
    "redfish": RedfishConfig,
    "command": CommandConfig,
    "webhook": AllowedEndpoint,
    "dns": DnsConfig,
    "none": None,
}
_ACCOUNT: Final = "redfish: [{match: 10.7.0.0/16, user: NAME, password_file: FILE}]"


@dataclass(frozen=True, slots=True)
class FileConfig:
    """The contents of the file.

    Attributes:
        executors: by name.
        operations: the executor of each kind of operation; other kinds cannot be done,
            except prepare and deactivate, which need no work.
        destinations: what may be called at addresses that callers of the API choose, with which credential.
        agent_checks: what agents may report of their own machine.
        recipients: who is notified of what concerns all projects.
    """

    global_limits: Limits = field(default_factory=dict)
    executors: Mapping[str, ExecutorConfig] = field(default_factory=dict)
    operations: Mapping[OperationKind, str] = field(default_factory=dict)
    destinations: Destinations = field(default_factory=Destinations)
    agent_checks: Patterns = field(default_factory=lambda: Patterns([]))
    smtp: SmtpServer | None = None
    recipients: tuple[Recipient, ...] = ()


def load(path: Path) -> FileConfig:
    """Raises BadConfig, OSError."""
    return parse(path.read_bytes(), path.parent)


def parse(text: bytes, folder: Folder) -> FileConfig:
    """Raises BadConfig."""
    try:
        content = yamltext.load(text) or {}
    except yamltext.BadYaml as error:
        raise BadConfig(f"is not valid YAML: {error}") from None
    _check_age(content)
    check_names("", content, SECTIONS)
    destinations = _destinations(content, folder)
    executors = {name: _executor(name, one, destinations, folder) for name, one in _section(content, "executors")}
    return FileConfig(
        global_limits={name: _limit(name, one) for name, one in _section(content, "automation")},
        executors=executors,
        operations={
            _kind(kind): _executor_name(kind, name, executors) for kind, name in _section(content, "operations")
        },
        destinations=destinations,
        agent_checks=_checks(content.get("agent_checks", [])),
        smtp=_smtp(content.get("smtp"), folder),
        recipients=tuple(_recipients(content, destinations)),
    )


def _check_age(content: Any) -> None:
    """Raises BadConfig: it is written as before credentials were bound to destinations."""
    if isinstance(content, Mapping) and "cms_tokens" in content:
        raise BadConfig(
            "cms_tokens: a token is sent to listed destinations only: write "
            "`cms: [{url: https://cms.example.net, tvm_app_id: NAME, token_file: FILE}]` instead"
        )


def _destinations(content: Mapping[str, Any], folder: Folder) -> Destinations:
    controllers = read_all("redfish", content.get("redfish") or [], Controllers, folder)
    for number, one in enumerate(controllers):
        _check_pair(f"redfish[{number}].", user=one.user, password_file=one.password)
    return Destinations(
        controllers,
        read_all("cms", content.get("cms") or [], CmsEndpoint, folder),
        read_all("notify", content.get("notify") or [], AllowedEndpoint, folder),
    )


def _check_pair(where: str, **both: str) -> None:
    """Raises BadConfig: one is there without the other, and no credential would be sent."""
    missing = [name for name, value in both.items() if not value]
    if 0 < len(missing) < len(both):
        raise BadConfig(f"{where}{missing[0]}: is missing")


def _executor(name: str, given: Any, destinations: Destinations, folder: Folder) -> ExecutorConfig:
    where = f"executors.{name}"
    if not isinstance(given, Mapping) or given.get("type") not in _KINDS:
        raise BadConfig(f"{where}.type: write one of {', '.join(_KINDS)}")
    kind, values = _KINDS[given["type"]], {key: value for key, value in given.items() if key != "type"}
    if kind is None:
        check_names(f"{where}.", values, ())
        return None
    if kind is RedfishConfig and (old := sorted({"user", "password_file"} & values.keys())):
        raise BadConfig(f"{where}.{old[0]}: an account is used at listed destinations only: write `{_ACCOUNT}` instead")
    config: ExecutorConfig = read_fields(where, values, kind, folder)
    _check_executor(where, config)
    if _calls_controllers(config) and not destinations.controllers:
        raise BadConfig(f"{where}: it calls management controllers, and none may be called: write `{_ACCOUNT}`")
    return config


def _check_executor(where: str, config: ExecutorConfig) -> None:
    """Raises BadConfig: what cannot be seen by types."""
    field_name = ""
    try:
        if isinstance(config, CommandConfig):
            for number, part in enumerate(config.argv):
                field_name = f".argv[{number}]"
                check_argument(number, part)
        elif isinstance(config, RedfishConfig):
            field_name = ".url"
            fields_in(config.url)
            parse_url(re.sub(r"\{[a-z]+\}", "x", config.url))
            field_name = ".system"
            fields_in(config.system)
        elif isinstance(config, DnsConfig):
            field_name = ".server"
            _check_ip(config.server)
            field_name = ""
            _check_pair(f"{where}.", key_name=config.key_name, key_file=config.key)
            Dns("", config)
    except ValueError as error:
        raise BadConfig(f"{where}{field_name}: {error}") from error


def _check_ip(text: str) -> None:
    """Raises ValueError."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no IP address: write that of the server, since a name could lead elsewhere"
        ) from None


def _calls_controllers(config: ExecutorConfig) -> bool:
    return isinstance(config, RedfishConfig) or (isinstance(config, CommandConfig) and "{bmc}" in config.argv)


def _recipients(content: Any, destinations: Destinations) -> list[Recipient]:
    found: list[Recipient] = []
    for name, addresses in _section(content, "notifications"):
        severity = Severity.Value(f"SEVERITY_{name.upper()}") if name in ("info", "warning", "error", "critical") else 0
        if not severity or not isinstance(addresses, list):
            raise BadConfig(f"notifications.{name}: write info, warning, error or critical, and a list of addresses")
        for address in addresses:
            if why := why_not_notified(str(address), destinations):
                raise BadConfig(f"notifications.{name}: {address}: {why}")
        found += [Recipient(severity=severity, address=str(one)) for one in addresses]  # type: ignore[arg-type]
    return found


def _checks(given: Any) -> Patterns:
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise BadConfig("agent_checks: write a list of names of checks")
    return Patterns(given)


def _limit(name: str, pairs: Any) -> Any:
    if name not in GLOBAL_NAMES:
        raise BadConfig(f"automation.{name}: not one of {', '.join(GLOBAL_NAMES)}")
    try:
        return parse_limit([str(one) for one in (pairs if isinstance(pairs, list) else [pairs])])
    except BadLimit as error:
        raise BadConfig(f"automation.{name}: {error}") from error


def _kind(name: str) -> OperationKind:
    if name not in KINDS:
        raise BadConfig(f"operations.{name}: not one of {', '.join(KINDS)}")
    return KINDS[name]


def _executor_name(kind: str, name: Any, executors: Mapping[str, ExecutorConfig]) -> str:
    if name not in executors:
        raise BadConfig(f"operations.{kind}: executor {name!r} is not defined under executors")
    return str(name)


def _smtp(given: Any, folder: Folder) -> SmtpServer | None:
    if given is None:
        return None
    with_port = {"port": 25, **given} if isinstance(given, Mapping) else given
    server = read_fields("smtp", with_port, SmtpServer, folder)
    _check_pair("smtp.", user=server.user, password_file=server.password)
    return server


def _section(content: Any, name: str) -> list[tuple[str, Any]]:
    section = content.get(name) or {}
    if not isinstance(section, dict):
        raise BadConfig(f"{name}: write names and values below it")
    return [(str(key), value) for key, value in section.items()]
