"""`systemctl` of a played machine: as much of systemd as our units use. Run as a program; the standard library alone.

    systemctl daemon-reload | enable --now UNIT... | start | restart | stop UNIT...

Each service has a process that starts it again (Restart=always), in a session of its own; the log is
/var/log/journal/UNIT.log.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

_UNITS: Final = Path("/etc/systemd/system")
_STATE: Final = Path("/run/played-systemd")
_KINDS: Final = {"State": Path("/var/lib"), "Logs": Path("/var/log"), "Runtime": Path("/run")}
_SPECIAL: Final = re.compile(r"\$\{(\w+)\}")


class Service:
    """A unit file under a name: `hq-gateway@dns` is of `hq-gateway@.service`."""

    def __init__(self, name: str) -> None:
        self.name = name.removesuffix(".service")
        prefix, at, self._instance = self.name.partition("@")
        text = (_UNITS / f"{prefix}{at}.service").read_text()
        self._settings: dict[str, list[str]] = {}
        section = ""
        for line in filter(None, map(str.strip, text.splitlines())):
            if line.startswith("["):
                section = line
            elif section == "[Service]" and not line.startswith(("#", ";")):
                key, _, value = line.partition("=")
                self._settings.setdefault(key, []).append(self._expanded(value))

    def commands(self) -> list[list[str]]:
        env = self.environment()
        return [
            [_SPECIAL.sub(lambda found: env.get(found[1], ""), word) for word in shlex.split(line)]
            for line in self._settings["ExecStart"]
        ]

    @property
    def type(self) -> str:
        return self._first("Type")

    def environment(self) -> dict[str, str]:
        """Nothing but what systemd gives: settings of files win over Environment=."""
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
        if user := self._user():
            env |= {"USER": user.pw_name, "LOGNAME": user.pw_name, "HOME": user.pw_dir, "SHELL": user.pw_shell}
        for line in self._settings.get("Environment", ()):
            env.update((name, value) for name, _, value in (word.partition("=") for word in shlex.split(line)))
        for name in self._settings.get("EnvironmentFile", ()):
            with contextlib.suppress(*([FileNotFoundError] if name.startswith("-") else [])):
                env.update(_read_settings(Path(name.removeprefix("-"))))
        if "LoadCredential" in self._settings:
            env["CREDENTIALS_DIRECTORY"] = self._credentials()
        return env

    def prepare(self) -> None:
        """Make the directories and credentials that the unit asks for."""
        user = self._user()
        for kind, parent in _KINDS.items():
            mode = int(self._first(f"{kind}DirectoryMode") or "0755", 8)
            for name in " ".join(self._settings.get(f"{kind}Directory", ())).split():
                (parent / name).mkdir(parents=True, exist_ok=True)
                (parent / name).chmod(mode)
                if user:
                    shutil.chown(parent / name, user.pw_uid, user.pw_gid)
        for line in self._settings.get("LoadCredential", ()):
            name, _, source = line.partition(":")
            place = Path(self._credentials()) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(Path(source).read_bytes())
            place.chmod(0o400)
            if user:
                shutil.chown(place, user.pw_uid, user.pw_gid)

    def popen(self, words: list[str], log: Any) -> subprocess.Popen[bytes]:
        """Start a command as the user of the unit, with no more than its capabilities."""
        user, bounding = self._user(), self._settings.get("CapabilityBoundingSet")
        wrapped = ["setpriv"]
        if user:
            wrapped += ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--init-groups"]
        if ambient := self._capabilities("AmbientCapabilities"):
            wrapped += ["--inh-caps", ambient, "--ambient-caps", ambient]
        if bounding is not None:
            wrapped += ["--bounding-set", self._capabilities("CapabilityBoundingSet") or "-all"]
        if self._first("NoNewPrivileges") == "yes":
            wrapped += ["--no-new-privs"]
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # in a container: below what units ask for
        files = min(int(self._first("LimitNOFILE") or "1024"), most if most > 0 else sys.maxsize)
        umask = int(self._first("UMask") or "0022", 8)

        def limit() -> None:
            os.umask(umask)
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        return subprocess.Popen(
            [*wrapped, *words], env=self.environment(), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=limit, start_new_session=True,
        )  # fmt: skip

    def _capabilities(self, key: str) -> str:
        names = " ".join(self._settings.get(key, ())).split()
        return ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in names)]) if names else ""

    def _user(self) -> pwd.struct_passwd | None:
        name = self._first("User")
        return pwd.getpwnam(name) if name else None

    def _credentials(self) -> str:
        return f"/run/credentials/{self.name}.service"

    def _first(self, key: str) -> str:
        return self._settings.get(key, [""])[0]

    def _expanded(self, value: str) -> str:
        values = {"i": self._instance, "H": socket.gethostname(), "n": f"{self.name}.service", "%": "%"}
        values["d"] = self._credentials()
        return re.sub(r"%(.)", lambda found: values[found[1]], value)


def _read_settings(path: Path) -> dict[str, str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def start(name: str) -> int:
    """Start a service; a one-shot is waited for. Return its exit code. A timer is only looked for."""
    if name.endswith(".timer"):
        return 0 if (_UNITS / name).exists() else 1
    service = Service(name)
    if service.type not in ("exec", "oneshot"):
        print(
            f"{name}: Type={service.type} is not played: `start` would wait for more than the process", file=sys.stderr
        )
        return 1
    service.prepare()
    log_path = Path("/var/log/journal") / f"{service.name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log = log_path.open("ab")
    if service.type == "oneshot":
        return max(service.popen(words, log).wait() for words in service.commands())
    if os.fork() == 0:
        os.setsid()
        _keep_running(service, log)
    return 0


def _keep_running(service: Service, log: Any) -> None:
    """Never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    for number, to in enumerate((null, log.fileno(), log.fileno())):
        os.dup2(to, number)
    _STATE.mkdir(parents=True, exist_ok=True)
    (_STATE / service.name).write_text(str(os.getpid()))
    running: list[subprocess.Popen[bytes]] = []
    is_told_to_stop = False

    def end(*_: object) -> None:
        nonlocal is_told_to_stop
        is_told_to_stop = True
        for process in running:
            process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    while True:
        (words,) = service.commands()
        running[:] = [service.popen(words, log)]
        code = running[0].wait()
        if is_told_to_stop:
            (_STATE / service.name).unlink()
            os._exit(0)
        log.write(f"systemctl: {service.name} ended with {code}; it is started again\n".encode())
        log.flush()
        time.sleep(1)


def stop(name: str) -> None:
    file = _STATE / name.removesuffix(".service")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(file.read_text()), signal.SIGTERM)
        while file.exists():
            time.sleep(0.05)


def main() -> int:
    verb, *units = (word for word in sys.argv[1:] if word != "--now")
    if verb in ("stop", "restart"):
        for unit in units:
            stop(unit)
    if verb in ("start", "restart", "enable"):
        return max([start(unit) for unit in units], default=0)
    return 0 if verb in ("daemon-reload", "stop") else 2


if __name__ == "__main__":
    sys.exit(main())
