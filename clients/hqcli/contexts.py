"""The config file: contexts, each an installation with its servers and credentials, and which of them is in use.

    current-context: east
    contexts:
      east:
        servers: [hq-1.east:7071, hq-2.east:7071]
        ca: ca.pem
        cert: me.pem
        key: me.key
        token-file: token
        timeout: 5s
        cms: [cms-1.east:7271]
        walle: [walle-1.east:7471]

All but `servers` may be left out; the credentials are also used for the CMS and Wall-E. Files are named relative to the
config file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hqcli.readable import parse_span
from hqclient.credential_files import CredentialFiles

CONTROLLERS = ("cms", "walle")
EXAMPLE = "`contexts: {east: {servers: [HOST:7071]}}` (docs/hqctl.md)"
WRITE_ONE = f"Write one: {EXAMPLE}"
FIELDS = ("servers", "ca", "cert", "key", "token-file", "timeout", *CONTROLLERS)


class BadContextFile(Exception):
    """The config file cannot be used; str() says where and why."""


@dataclass(frozen=True, slots=True)
class Context:
    """Whom to ask, and as whom.

    Attributes:
        controllers: servers of a CMS or Wall-E, by the field that names them.
    """

    name: str
    servers: tuple[str, ...]
    credentials: CredentialFiles = field(default_factory=CredentialFiles)
    timeout_s: float | None = None
    controllers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextFile:
    """The contents of the file; without a file (`exists` False) it is empty."""

    path: Path
    contexts: Mapping[str, Context] = field(default_factory=dict)
    current: str = ""
    exists: bool = True

    def context(self, name: str) -> Context:
        """The context with a name; `name` empty: the current one.

        Raises:
            BadContextFile: there is none.
        """
        if not self.exists:
            raise BadContextFile(self.lacks_file())
        found = self.contexts.get(name or self.current)
        if found is None:
            raise BadContextFile(f"{self.path}: there is no context {name or self.current!r}; {self._there_are()}")
        return found

    def lacks_file(self) -> str:
        """The message for a missing file: where it should be, and what to write in it."""
        return f"there is no config file {self.path}: write one, e.g. {EXAMPLE}"

    def _there_are(self) -> str:
        return f"there are {', '.join(self.contexts)}" if self.contexts else f"it has no contexts. {WRITE_ONE}"


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """HQ_CONFIG, else hq/config.yaml in the user's configuration directory."""
    if named := environ.get("HQ_CONFIG"):
        return Path(named).expanduser()
    home = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "hq" / "config.yaml"


def load(path: Path) -> ContextFile:
    """The config in a file; an empty one if there is no file. Raises BadContextFile."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if os.environ.get("HQ_CONFIG"):
            raise BadContextFile(
                f"HQ_CONFIG={os.environ['HQ_CONFIG']}: there is no such file: write it, or unset HQ_CONFIG"
            ) from None
        return ContextFile(path, exists=False)
    except (OSError, UnicodeDecodeError) as error:
        raise BadContextFile(f"{path}: cannot be read: {error}") from None
    return parse(text, path)


def parse(text: str, path: Path) -> ContextFile:
    """The config in a text. Raises BadContextFile."""
    from hqcli.documents import BadDocument, value_of  # only users with a config file pay for YAML

    try:
        value = value_of(text) or {}
    except BadDocument as fault:
        raise BadContextFile(f"{path}: is not valid YAML: {fault}") from None
    if not isinstance(value, dict) or not isinstance(value.get("contexts") or {}, dict):
        raise BadContextFile(f"{path}: must hold `contexts:`, and below it each context by name")
    contexts = {str(name): _context(str(name), one, path) for name, one in (value.get("contexts") or {}).items()}
    return ContextFile(path, contexts, str(value.get("current-context") or ""))


def with_current(text: str, name: str) -> str:
    """The text of a config file with another current context; everything else stays as it was written."""
    line = f"current-context: {name}"
    lines = text.splitlines()
    for number, old in enumerate(lines):
        if old.startswith("current-context:"):
            lines[number] = line
            return "\n".join(lines) + "\n"
    return "\n".join([line, *lines]) + "\n"


def _context(name: str, value: Any, path: Path) -> Context:
    where = f"{path}: contexts.{name}"
    if not isinstance(value, dict):
        raise BadContextFile(f"{where}: must hold fields such as servers")
    for key in value:
        if key not in FIELDS:
            raise BadContextFile(f"{where}.{key}: unknown field; there are {', '.join(FIELDS)}")
    listed = _address_tuple(value.get("servers"))
    if not listed:
        raise BadContextFile(f"{where}.servers: is missing; name each replica as HOST:PORT")
    controllers = {key: _address_tuple(value[key]) for key in CONTROLLERS if key in value}
    context = Context(name, listed, _credentials(value, path.parent), controllers=controllers)
    if "timeout" not in value:
        return context
    try:
        timeout_s = parse_span(str(value["timeout"]))
    except ValueError as error:
        raise BadContextFile(f"{where}.timeout: {error}") from None
    if not timeout_s:
        raise BadContextFile(f"{where}.timeout: must be more than 0")
    return replace(context, timeout_s=timeout_s)


def _address_tuple(servers: Any) -> tuple[str, ...]:
    return (servers,) if isinstance(servers, str) else tuple(map(str, servers or ()))


def _credentials(value: dict[str, Any], folder: Path) -> CredentialFiles:
    names = {key: str(folder / Path(str(value[key])).expanduser()) for key in FIELDS[1:5] if value.get(key)}
    return CredentialFiles(
        names.get("ca", ""), names.get("cert", ""), names.get("key", ""), names.get("token-file", "")
    )
