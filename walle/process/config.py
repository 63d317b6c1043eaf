"""The configuration file (YAML): global limits, executors, tokens, recipients. Secrets are files, never values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from serving import yamltext
from walle.executors.command import CommandConfig
from walle.executors.dns import DnsConfig
from walle.executors.over_http import RedfishConfig
from walle.fuses.limits import GLOBAL_NAMES, BadLimit, Limits, parse_limit
from walle.notices import SmtpServer
from walle.tables import KINDS
from wallepb.v1.host_pb2 import OperationKind
from wallepb.v1.project_pb2 import Recipient, Severity

EXECUTORS: Final = ("redfish", "command", "webhook", "dns", "none")
SECTIONS: Final = ("automation", "executors", "operations", "cms_tokens", "smtp", "notifications")


class BadConfig(Exception):
    """The file cannot be used; the message names the place."""


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """An external service to call."""

    url: str
    token: str = ""


ExecutorConfig = RedfishConfig | CommandConfig | WebhookConfig | DnsConfig | None


@dataclass(frozen=True, slots=True)
class FileConfig:
    """What the file says.

    Attributes:
        executors: by name.
        operations: the executor of each kind of operation; other kinds cannot be done,
            except prepare and deactivate, which need no work.
        cms_tokens: by the `tvm_app_id` of CMS settings.
        recipients: who is notified of what concerns all projects.
    """

    global_limits: Limits = field(default_factory=dict)
    executors: Mapping[str, ExecutorConfig] = field(default_factory=dict)
    operations: Mapping[OperationKind, str] = field(default_factory=dict)
    cms_tokens: Mapping[str, str] = field(default_factory=dict)
    smtp: SmtpServer | None = None
    recipients: tuple[Recipient, ...] = ()


def load(path: Path) -> FileConfig:
    """Raises BadConfig, OSError."""
    try:
        content = yamltext.load(path.read_text()) or {}
    except yamltext.BadYaml as error:
        raise BadConfig(f"is not valid YAML: {error}") from None
    _check_keys("", content, SECTIONS)
    executors = {name: _executor(f"executors.{name}", one, path.parent) for name, one in _section(content, "executors")}
    return FileConfig(
        global_limits={name: _limit(name, one) for name, one in _section(content, "automation")},
        executors=executors,
        operations={_kind(kind): _known(kind, name, executors) for kind, name in _section(content, "operations")},
        cms_tokens={str(app): _secret("cms_tokens", one, path.parent) for app, one in _section(content, "cms_tokens")},
        smtp=_smtp(content.get("smtp"), path.parent),
        recipients=tuple(_recipients(content)),
    )


def _recipients(content: Any) -> list[Recipient]:
    found = []
    for name, addresses in _section(content, "notifications"):
        severity = Severity.Value(f"SEVERITY_{name.upper()}") if name in ("info", "warning", "error", "critical") else 0
        if not severity or not isinstance(addresses, list):
            raise BadConfig(f"notifications.{name}: write info, warning, error or critical, and a list of addresses")
        found += [Recipient(severity=severity, address=str(one)) for one in addresses]  # type: ignore[arg-type]
    return found


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


def _known(kind: str, name: Any, executors: Mapping[str, ExecutorConfig]) -> str:
    if name not in executors:
        raise BadConfig(f"operations.{kind}: executor {name!r} is not defined under executors")
    return str(name)


def _executor(where: str, given: Any, folder: Path) -> ExecutorConfig:
    if not isinstance(given, dict) or given.get("type") not in EXECUTORS:
        raise BadConfig(f"{where}.type: write one of {', '.join(EXECUTORS)}")
    values = {name: value for name, value in given.items() if name != "type"}
    for name in [name for name in values if name.endswith("_file")]:
        values[name.removesuffix("_file")] = _secret(f"{where}.{name}", values.pop(name), folder)
    if given["type"] == "dns":
        values["keys"] = {str(values.pop("key_name", "")): values.pop("key")} if "key" in values else {}
    make: dict[str, Callable[..., ExecutorConfig]] = {
        "redfish": RedfishConfig,
        "command": CommandConfig,
        "webhook": WebhookConfig,
        "dns": DnsConfig,
        "none": lambda: None,
    }
    try:
        return make[given["type"]](**values)
    except TypeError as error:
        raise BadConfig(f"{where}: {str(error).partition('() ')[2] or error}") from error


def _smtp(given: Any, folder: Path) -> SmtpServer | None:
    if given is None:
        return None
    _check_keys("smtp.", given, ("host", "port", "sender", "user", "password_file"))
    password = _secret("smtp.password_file", given["password_file"], folder) if "password_file" in given else ""
    try:
        return SmtpServer(given["host"], int(given.get("port", 25)), given["sender"], given.get("user", ""), password)
    except KeyError as error:
        raise BadConfig(f"smtp.{error.args[0]}: is missing") from error


def _secret(where: str, file: Any, folder: Path) -> str:
    try:
        return (folder / str(file)).read_text().strip()
    except OSError as error:
        raise BadConfig(f"{where}: {error.strerror}: {error.filename}") from error


def _section(content: Any, name: str) -> list[tuple[str, Any]]:
    section = content.get(name) or {}
    if not isinstance(section, dict):
        raise BadConfig(f"{name}: write names and values below it")
    return [(str(key), value) for key, value in section.items()]


def _check_keys(where: str, given: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise BadConfig(f"{where or 'the file'}: write names and values")
    if unknown := sorted(set(map(str, given)) - set(allowed)):
        raise BadConfig(f"{where}{unknown[0]}: not one of {', '.join(allowed)}")
