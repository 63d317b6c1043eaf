"""The settings of the command line, in one value."""

from __future__ import annotations

import pwd
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import NamedTuple

from hqclient.credential_files import CredentialFiles
from instancectl.containers.restarts import RestartSettings
from instancectl.processes.confinement import ProcessUser
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
    """The settings of `run`.

    Attributes:
        file: take the wanted state from there, not from HQ.
        host_agent: socket of the host agent, the way to HQ; None: there is none.
        servers: replicas of HQ, for going there directly; with a host agent, while that is away for long.
        store: shared store of contents; None: one below the directory.
        file_root: `file:` sources are allowed below it; None: nowhere.
        fetch_from: addresses of this machine or its link that http(s) sources may lead to.
        fetch_bytes: the largest file or package.
        allow_unchecked: take files and packages without a checksum, too.
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
    allow_unchecked: bool = False
    providers: tuple[ProviderSpec, ...] = ()
    credentials: CredentialFiles = field(default_factory=CredentialFiles)
    when_fenced: str = "stop"
    once: bool = False
    restarts: RestartSettings = field(default_factory=RestartSettings)
    output: OutputSettings = field(default_factory=OutputSettings)


@dataclass(frozen=True, slots=True)
class Manner:
    """How the flags make it behave.

    Attributes:
        starts: False: prepare and remove, but leave alone what runs, and start nothing (`--once`).
        stops_when_fenced: another reporter has the instance: stop its processes, for they run elsewhere.
    """

    starts: bool = True
    stops_when_fenced: bool = True


@dataclass(frozen=True, slots=True)
class UidRange:
    """Numbers of users that nothing else on the node uses, the last one included."""

    first: int
    last: int

    def __contains__(self, uid: int) -> bool:
        return self.first <= uid <= self.last


DEFAULT_UIDS = UidRange(200_000, 265_535)


class BadUidRange(ValueError):
    """str() says what is wrong and how it is written."""


def parse_uid_range(text: str) -> UidRange:
    """`FIRST-LAST`. Raises BadUidRange."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 2**31):
        raise BadUidRange(f"{text!r}: write FIRST-LAST, without 0 in it, e.g. 200000-265535")
    return UidRange(int(first), int(last))


class ServiceUser(NamedTuple):
    """A service, and whom the node lets it run as."""

    service: str
    user: ProcessUser


class BadServiceUser(ValueError):
    """str() says what is wrong and how it is written."""


def parse_service_user(text: str) -> ServiceUser:
    """`SERVICE=USER`, a user of this machine by name, or a number. Raises BadServiceUser."""
    service, equals, name = text.partition("=")
    if not (service and equals and name):
        raise BadServiceUser(f"{text!r}: write SERVICE=USER, e.g. db=postgres")
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
        user = ProcessUser(found.pw_uid, found.pw_gid)
    except KeyError:
        if not name.isdecimal():
            raise BadServiceUser(f"{text!r}: this machine has no user {name}: create it, or write its number") from None
        user = ProcessUser(int(name), int(name))
    if user.uid == 0:
        raise BadServiceUser(f"{text!r}: that is root: write --allow-root {service}")
    return ServiceUser(service, user)


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of `node`.

    Attributes:
        run: for each instance; its `directory` is the one above those of all, its `host_agent` the socket to serve.
        speakers: who else may report at the socket.
        stops_at_end: at SIGTERM stop the instances; else they are left running for a successor.
        uids: for the users of services.
        rooted: services that run as root.
        users: services that run as a user of the machine.
        runtime: `plain`, `bubblewrap`, or `auto`: bubblewrap if it works here.
    """

    run: RunSettings
    speakers: tuple[Speaker, ...] = ()
    stops_at_end: bool = False
    uids: UidRange = DEFAULT_UIDS
    rooted: tuple[str, ...] = ()
    users: tuple[ServiceUser, ...] = ()
    runtime: str = "auto"

    @property
    def own_directory(self) -> Path:
        """The agent's own directory."""
        return node_socket_of(self.run.directory).parent

    @property
    def socket(self) -> Path:
        """Where supervisors report to."""
        assert self.run.host_agent is not None
        return self.run.host_agent

    def for_instance(self, instance_id: str) -> RunSettings:
        """One instance's settings, as of `run --instance`: it reports at the socket, and has a directory of its own."""
        return replace(self.run, instance_id=instance_id, directory=self.run.directory / instance_id, servers=())


def node_socket_of(directory: Path) -> Path:
    """Where the agent of a node answers `instancectl status`, if its instances are below `directory`."""
    return directory / "+node" / "instancectl.sock"  # `+`: no instance has such a name
