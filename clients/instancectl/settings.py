"""What the command line says, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import NamedTuple

from hqclient.credential_files import CredentialFiles
from instancectl.containers.restarts import RestartSettings
from instancectl.processes.output import OutputSettings


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A provider of secrets: `NAME=dir:PATH` or `NAME=command:PROGRAM [ARGUMENT]...`."""

    name: str
    kind: str
    place: str


class BadProvider(ValueError):
    """str() says what is wrong and how it is written."""


def parse_provider(text: str) -> ProviderSpec:
    """Raises BadProvider."""
    name, equals, rest = text.partition("=")
    kind, colon, place = rest.partition(":")
    if not (equals and colon and place) or kind not in ("dir", "command"):
        raise BadProvider(f"{text!r}: write NAME=dir:PATH or NAME=command:PROGRAM [ARGUMENT]...")
    return ProviderSpec(name, kind, place)


class Speaker(NamedTuple):
    """Users, and the instances that they may speak for; `{user}` in an instance's name is the user's."""

    users: str
    instances: tuple[str, ...]


class BadSpeaker(ValueError):
    """str() says what is wrong and how it is written."""


def parse_speaker(text: str) -> Speaker:
    """`USER=INSTANCE[,INSTANCE]...`, each with `*` for anything. Raises BadSpeaker."""
    user, equals, rest = text.partition("=")
    instances = tuple(word.strip() for word in rest.split(",") if word.strip())
    if not (user.strip() and equals and instances):
        raise BadSpeaker(f"{text!r}: write USER=INSTANCE[,INSTANCE]..., e.g. web=web-* or *={{user}}")
    return Speaker(user.strip(), instances)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What `run` was asked to do.

    Attributes:
        file: take the wanted state from there, not from HQ.
        host_agent: socket of the host agent, the way to HQ; None: there is none.
        servers: replicas of HQ, for going there directly; with a host agent, while that is away for long.
        store: shared store of contents; None: one below the directory.
        file_root: `file:` sources are allowed below it; None: nowhere.
        fetch_from: addresses of this machine or its link that http(s) sources may lead to.
        fetch_bytes: the largest file or package.
        credentials: for the replicas.
    """

    directory: Path
    node: str
    instance_id: str = ""
    file: Path | None = None
    servers: tuple[str, ...] = ()
    host_agent: Path | None = None
    store: Path | None = None
    file_root: Path | None = None
    fetch_from: tuple[IPv4Network | IPv6Network, ...] = ()
    fetch_bytes: int = 20 << 30
    providers: tuple[ProviderSpec, ...] = ()
    credentials: CredentialFiles = field(default_factory=CredentialFiles)
    when_fenced: str = "stop"
    once: bool = False
    restarts: RestartSettings = field(default_factory=RestartSettings)
    output: OutputSettings = field(default_factory=OutputSettings)


@dataclass(frozen=True, slots=True)
class Manner:
    """What its flags say.

    Attributes:
        starts: False: prepare and remove, but leave alone what runs, and start nothing (`--once`).
        stops_when_fenced: another reporter has the instance: stop its processes, for they run elsewhere.
    """

    starts: bool = True
    stops_when_fenced: bool = True
