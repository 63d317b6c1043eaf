"""Options that several commands of instancectl share."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeVar

import click

from instancectl.settings import (
    BadProvider,
    BadServiceUser,
    BadSpeaker,
    BadUidRange,
    ProviderSpec,
    ServiceUser,
    Speaker,
    UidRange,
    parse_provider,
    parse_service_user,
    parse_speaker,
    parse_uid_range,
)

DEFAULT_DIRECTORY = Path("instance")
DEFAULT_NODE_DIRECTORY = Path("/var/lib/instances")
DEFAULT_AGENT = Path("/run/instancectl/host-agent.sock")


class Provider(click.ParamType[ProviderSpec]):
    """NAME=dir:PATH or NAME=command:PROGRAM."""

    name = "NAME=KIND:PLACE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> ProviderSpec:
        try:
            return parse_provider(value)
        except BadProvider as error:
            self.fail(str(error), param, ctx)


class Network(click.ParamType[IPv4Network | IPv6Network]):
    """An IP address, or a network as ADDRESS/BITS."""

    name = "ADDRESS"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> IPv4Network | IPv6Network:
        try:
            return ip_network(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid IP address or network: write 127.0.0.1 or 127.0.0.0/8", param, ctx)


class Folder(click.Path):
    """A folder that is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not Path(value).is_dir():
            self.fail(f"{value}: is not a folder: create it, or give another one", param, ctx)
        return super().convert(value, param, ctx)


class SpeakerOption(click.ParamType[Speaker]):
    """USER=INSTANCE[,INSTANCE]..."""

    name = "USER=INSTANCE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Speaker:
        try:
            return parse_speaker(value)
        except BadSpeaker as error:
            self.fail(str(error), param, ctx)


class UidRangeOption(click.ParamType[UidRange]):
    """FIRST-LAST."""

    name = "FIRST-LAST"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> UidRange:
        try:
            return parse_uid_range(value)
        except BadUidRange as error:
            self.fail(str(error), param, ctx)


class ServiceUserOption(click.ParamType[ServiceUser]):
    """SERVICE=USER."""

    name = "SERVICE=USER"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> ServiceUser:
        try:
            return parse_service_user(value)
        except BadServiceUser as error:
            self.fail(str(error), param, ctx)


_SOME_S = click.FloatRange(min=0, min_open=True)
directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="Directory of the instance, used by nothing else.",
)
node_directory_option = click.option(
    "--dir", "directory", type=click.Path(file_okay=False, path_type=Path), default=DEFAULT_NODE_DIRECTORY,
    show_default=True, help="Directory above those of the instances, which are named by their ids.",
)  # fmt: skip
server_option = click.option(
    "--server", "servers", multiple=True, envvar="HQ_SERVER", metavar="HOST:PORT", help="A replica of HQ; repeatable."
)


node_option = click.option("--node", default="", help="Name of this node.  [default: host name]")
host_agent_socket_option = click.option(
    "--socket", "path", type=click.Path(path_type=Path), default=DEFAULT_AGENT, show_default=True,
    help="Socket to listen on for supervisors.",
)  # fmt: skip
speaker_option = click.option(
    "--allow", "speakers", type=SpeakerOption(), multiple=True,
    help="Let USER report for these instances, besides root and this user; {user} stands for the user's name.",
)  # fmt: skip
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Log debug messages.")
F = TypeVar("F", bound=Callable[..., Any])
_FOR_INSTANCES = (
    click.option(
        "--secrets", "providers", type=Provider(), multiple=True, help="Provider of secret values; repeatable."
    ),
    click.option(
        "--store", type=click.Path(file_okay=False, path_type=Path),
        help="Cache of fetched content, shared with others.",
    ),
    click.option(
        "--file-root", type=Folder(path_type=Path),
        help="Allow file: sources, below this directory; without it, none are.",
    ),
    click.option(
        "--fetch-from", type=Network(), multiple=True, metavar="ADDRESS",
        help="Allow http(s): sources at this loopback or link-local address or network, too; repeatable.",
    ),
    click.option(
        "--fetch-bytes", type=click.IntRange(1), default=20 << 30, show_default=True,
        help="Size of the largest source.",
    ),
    click.option(
        "--allow-unchecked", is_flag=True, help="Take files and packages that the specification gives no checksum of.",
    ),
    click.option(
        "--when-fenced", type=click.Choice(["stop", "keep"]), default="stop", show_default=True,
        help="What to do with the containers when another supervisor of this instance takes over.",
    ),
    click.option(
        "--log-bytes", type=click.IntRange(1), default=10 << 20, show_default=True,
        help="Size at which a container's log is rotated.",
    ),
    click.option("--log-files", type=click.IntRange(1), default=3, show_default=True, help="Rotated logs to keep."),
    click.option(
        "--restart-first", type=_SOME_S, default=0.5, show_default=True, help="Seconds before the first restart."
    ),
    click.option(
        "--restart-max", type=_SOME_S, default=60.0, show_default=True,
        help="Longest delay before a restart, in seconds.",
    ),
)  # fmt: skip


def instance_options(command: F) -> F:
    """Give a command the options that say how an instance is supervised, whether alone or with others."""
    for option in reversed(_FOR_INSTANCES):
        command = option(command)
    return command
