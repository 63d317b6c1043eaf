"""The CMS and other controllers, for the commands about them: where they are, and calls to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from hqcli.call import Processes
from hqcli.controllers import ControllerOption, controller_options
from hqclient.credential_files import CredentialFiles
from hqctl.asking.cluster import named_cluster

if TYPE_CHECKING:
    from hqclient.credentials import Credentials
    from hqclient.links import ChannelFactory


CMS: Final = ControllerOption("the CMS", "--cms", "HQ_CMS", "127.0.0.1:7271", field="cms")


class ControllerProcesses(Processes):
    """Processes of one controller that `hqctl` asks; with -v each call is shown."""

    def channels(self, credentials: Credentials) -> ChannelFactory:
        from hqctl.asking.connecting import channel_factory

        return channel_factory(credentials, verbose=bool(_root().params.get("verbose")))


class CmsProcesses(ControllerProcesses):
    """Processes of one CMS."""

    controller = CMS


def _cms(addresses: tuple[str, ...], timeout_s: float, credentials: CredentialFiles) -> CmsProcesses:
    for flag, is_said in (("--server", _root().params.get("servers")), ("--cluster", named_cluster(_root()))):
        if is_said:
            raise click.UsageError(f"{flag} is about HQ; name the CMS with --cms, HQ_CMS or `cms` of a context")
    return CmsProcesses(addresses, timeout_s, credentials)


def _root() -> click.Context:
    return click.get_current_context().find_root()


at_cms = controller_options(CMS, _cms)
"""Gives a command the options that say where the CMS is, and a Cms as its first argument."""
