"""The CMS and other controllers, for the commands about them: where they are, and calls to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

import click

from hqcli.call import Processes
from hqcli.controllers import ControllerOption, controller_options
from hqclient.credential_files import CredentialFiles
from hqctl.asking.cluster import named_cluster

if TYPE_CHECKING:
    from hqclient.credentials import Credentials
    from hqclient.links import ChannelFactory


CMS: Final = ControllerOption("the CMS", "--cms", "HQ_CMS", "127.0.0.1:7271", field="cms")
WALLE: Final = ControllerOption("Wall-E", "--walle", "HQ_WALLE", "127.0.0.1:7471", field="walle")
P = TypeVar("P", bound=Processes)


class ControllerProcesses(Processes):
    """Processes of one controller that `hqctl` asks; with -v each call is shown."""

    def channels(self, credentials: Credentials) -> ChannelFactory:
        from hqctl.asking.connecting import channel_factory

        return channel_factory(credentials, verbose=bool(_root().params.get("verbose")))


class CmsProcesses(ControllerProcesses):
    """Processes of one CMS."""

    controller = CMS


class HqctlWalleProcesses(ControllerProcesses):
    """Processes of one Wall-E."""

    controller = WALLE


def _process_factory(made: type[P]) -> Callable[[tuple[str, ...], float, CredentialFiles], P]:
    """A function that makes the processes at some addresses, unless flags name an HQ, too: a usage error."""

    def check(addresses: tuple[str, ...], timeout_s: float, credentials: CredentialFiles) -> P:
        option = made.controller
        for flag, is_said in (("--server", _root().params.get("servers")), ("--cluster", named_cluster(_root()))):
            if is_said:
                way = f"{option.flag}, {option.variable} or `{option.field}` of a context"
                raise click.UsageError(f"{flag} is about HQ; name {option.name} with {way}")
        return made(addresses, timeout_s, credentials)

    return check


def _root() -> click.Context:
    return click.get_current_context().find_root()


at_cms = controller_options(CMS, _process_factory(CmsProcesses))
"""Gives a command the options that say where the CMS is, and a Cms as its first argument."""
AT: Final = {"cms": at_cms, "walle": controller_options(WALLE, _process_factory(HqctlWalleProcesses))}
"""Such decorators by the name of a controller."""
