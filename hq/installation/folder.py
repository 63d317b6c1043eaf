"""The folder of an installation: made from its plan, kept by later runs, renewed."""

from __future__ import annotations

import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

from hq.installation import authority, tokens
from hq.installation.authority import CertificateAuthority, CertificateRequest
from hq.installation.files import write_atomically, write_once
from hq.installation.plan import BadPlan, InstallationPlan
from hq.installation.readers import CHECKED, POLICIES, read_config
from hq.installation.servers import SERVERS, ServerNeeds
from hq.installation.settings import settings_of
from hq.installation.tokens import TokenRequest, TokenSigner
from serving.auth.watched_files import BadSecurity

AUDIENCES: Final = ("hq", "federated", "cms", "nanny", "walle", "recorder", "console", "gateway")
# The operator's own, as the policies are: written once.
_CONFIG: Final = ("revoked.yaml", "sites.yaml", "walle.yaml", "federated.yaml")
_RULES: Final = ("alerts.yml", "cms.yml", "nanny.yml", "walle.yml")
_SESSION_KEY_BYTES: Final = 32


@dataclass(slots=True)
class WrittenFiles:
    """The files that a run changed, by path in the folder."""

    keys: list[str] = field(default_factory=list)
    certificates: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def check_config(folder: Path) -> None:
    """Check the files that servers reread: a server keeps the old contents of a bad one, and tells only its log.

    Raises BadPlan, OSError.
    """
    for name in CHECKED:
        path = folder / "config" / name
        try:
            if path.exists():
                read_config(name, path.read_bytes())
        except BadSecurity as error:
            end = "" if str(error).endswith("?") else "."
            raise BadPlan(f"{path}: {error}{end} Nothing was written.") from None


class InstallationFolder:
    """The files of the folder. Raises BadKeyFile, OSError."""

    def __init__(self, path: Path, plan: InstallationPlan, now: datetime) -> None:
        self._path, self._plan, self._now = path, plan, now
        self._shipped: Traversable = files("deploy")
        self.written = WrittenFiles()

    def write(self) -> None:
        """Make what is missing, and remake what follows from the plan; keys and the operator's own files stay."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._plan.write(self._path)
        self._write_config()
        self.renew(authority.DUE, tokens.DUE)
        for machine in self._plan.machines:
            self._write_machine(machine)
        self._remove_other_machines()
        self._write_own_files()

    def renew(self, due: timedelta, tokens_due: timedelta) -> None:
        """Sign certificates and tokens that end within these times. The CAs' own last for ten years."""
        secret = self._path / "secret"
        authorities = {name: CertificateAuthority(secret, name, self._now) for name in ("server", "client", "etcd")}
        for request in self._certificates():
            if authorities[request.authority].renew(request, self._now, due):
                self._note(self.written.certificates, request.path.with_suffix(".crt"))
        signer = TokenSigner(secret)
        write_atomically(secret / "jwks.json", signer.jwks())
        if write_once(secret / "session.key", secrets.token_bytes(_SESSION_KEY_BYTES)):
            self._note(self.written.keys, secret / "session.key")
        for token in self._tokens():
            if signer.renew(token, self._now, tokens_due):
                self._note(self.written.tokens, token.path)

    def _certificates(self) -> Iterator[CertificateRequest]:
        for name, address in self._plan.machines.items():
            own = (name, address, "localhost", "127.0.0.1")
            for server in self._servers_of(name):
                for file, (signer, identity, usages) in server.certificates.items():
                    names = (
                        (self._identity(identity.format(machine=name, agents=self._plan.agents)),) if identity else own
                    )
                    yield CertificateRequest(signer, self._etc(name, server) / file, names, usages)
        prometheus = self._path / "prometheus" / "client"
        yield CertificateRequest("client", prometheus, (self._identity("prometheus"),), ("client",))

    def _tokens(self) -> Iterator[TokenRequest]:
        yield TokenRequest(self._path / "tokens" / "admin.token", self._plan.admin, AUDIENCES)
        yield TokenRequest(self._path / "prometheus" / "prometheus.token", "prometheus", ("federated",))

    def _identity(self, name: str) -> str:
        return f"spiffe://{self._plan.trust_domain}/{name}"

    def _write_config(self) -> None:
        config, values = self._path / "config", settings_of(self._plan)
        for name in POLICIES:
            text = self._text("policies", f"{name}.yaml")
            text = text.replace("hq.example", self._plan.trust_domain).replace("ops/ada", self._plan.admin)
            text = text.replace("/agent/{node}", f"/{self._plan.agents}/{{node}}")
            self._write_once(config / "policies" / f"{name}.yaml", text)
        for name in _CONFIG:
            self._write_once(config / name, Template(self._text("systemd", name)).substitute(values))
        for server in SERVERS:
            for name in server.settings:
                if name.endswith(".env"):
                    self._write_once(config / name, f"# Settings of all machines, besides and over those of {name}.\n")

    def _write_machine(self, name: str) -> None:
        folder, address = self._path / "machines" / name, self._plan.machines[name]
        values = settings_of(self._plan, name)
        for server in self._servers_of(name):
            etc = self._etc(name, server)
            for file in server.settings:
                text = Template(self._text("systemd", file)).substitute(values)
                if file.endswith(".env"):
                    text += (self._path / "config" / file).read_text()
                self._write(etc / file, text.encode())
            for file, source in server.copies.items():
                self._write(etc / file, (self._path / source).read_bytes())
            for unit in server.units:
                self._write(folder / "units" / unit, self._text("systemd", unit).encode())
        self._write(folder / "units" / "hq.sysusers", self._text("systemd", "hq.sysusers").encode())
        self._write(folder / "install", self._text("installation", "install").encode(), 0o700)
        self._write(folder / "address", f"{address}\n".encode())

    def _remove_other_machines(self) -> None:
        for folder in (self._path / "machines").iterdir():
            if folder.name not in self._plan.machines:
                shutil.rmtree(folder)
                self._note(self.written.others, folder)

    def _write_own_files(self) -> None:
        """Write the files that stay on this machine, and those for Prometheus."""
        commands = Path(sys.executable).with_name("hq")
        values = {**settings_of(self._plan), "folder": self._path, "hq": commands, "start": self._start_commands()}
        for name in ("README.md", "operator.env", "units/hq-renew.service", "units/hq-renew.timer"):
            text = self._text("installation", Path(name).name)
            self._write(self._path / name, Template(text).substitute(values).encode())
        self._write(self._path / "distribute", self._text("installation", "distribute").encode(), 0o700)
        prometheus = self._path / "prometheus"
        text = Template(self._text("prometheus", "installation.yml")).substitute(values)
        self._write(prometheus / "installation.yml", text.encode())
        self._write(prometheus / "server-ca.crt", (self._path / "secret" / "server-ca.crt").read_bytes())
        for name in _RULES:
            self._write(prometheus / name, self._text("prometheus", name).encode())

    def _start_commands(self) -> str:
        lines = ["| machine | command |", "| --- | --- |"]
        for name, address in self._plan.machines.items():
            units = " ".join(unit for server in self._servers_of(name) for unit in server.starts)
            lines.append(f"| {name} ({address}) | `systemctl enable --now {units}` |")
        return "\n".join(lines)

    def _servers_of(self, machine: str) -> list[ServerNeeds]:
        return [server for server in SERVERS if machine in getattr(self._plan, server.machines)]

    def _etc(self, machine: str, server: ServerNeeds) -> Path:
        return self._path / "machines" / machine / "etc" / server.name

    def _text(self, folder: str, name: str) -> str:
        return (self._shipped / folder / name).read_text()

    def _write(self, path: Path, content: bytes, mode: int = stat.S_IRUSR | stat.S_IWUSR) -> None:
        if write_atomically(path, content, mode):
            self._note(self.written.others, path)

    def _write_once(self, path: Path, text: str) -> None:
        if write_once(path, text.encode()):
            self._note(self.written.others, path)

    def _note(self, changed: list[str], path: Path) -> None:
        changed.append(path.relative_to(self._path).as_posix())
