"""Calls of walle.v1, at the servers that the command line names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from hqcli.call import Processes, is_read
from hqcli.complaints import complainer
from hqcli.controllers import ControllerOption

if TYPE_CHECKING:
    from google.protobuf.message import Message

DEFAULT_PORT: Final = 7471
WALLE: Final = ControllerOption(
    "Wall-E", "--server", "WALLE_SERVER", f"127.0.0.1:{DEFAULT_PORT}", field="walle", prefix="WALLE_"
)


class WalleProcesses(Processes):
    """Processes of one Wall-E."""

    controller = WALLE
    program = "walle"


complain = complainer("walle")


def call_pages(method: str, request: Message) -> Any:
    """The answers of all pages, as one; exits with a message if there is none."""
    walle: WalleProcesses = click.get_current_context().find_root().obj
    return walle.result(walle.call_pages(method, request), writing=False)


def call(method: str, request: Message) -> Any:
    """The answer; exits with a message if there is none."""
    walle: WalleProcesses = click.get_current_context().find_root().obj
    return walle.result(walle.call(method, request), writing=not is_read(method))
