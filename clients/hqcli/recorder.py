"""The recorder, as commands ask it: where it is, and how a record is read whole."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from hqcli.call import Processes
from hqcli.controllers import ControllerOption

if TYPE_CHECKING:
    from google.protobuf.message import Message

RECORDER: Final = ControllerOption("the recorder", "--recorder", "HQ_RECORDER", "127.0.0.1:7871")


class RecorderProcesses(Processes):
    """Processes of the recorder."""

    controller = RECORDER

    async def read_record(self, method: str, request: Message) -> list[bytes]:
        """The answers of a stream, each compressed, from the first process that gives all of them.

        Raises HqApiError, BadCredentials.
        """
        from hqclient.errors import HqApiError

        for address in self.addresses:
            try:
                return [
                    zlib.compress(one.SerializeToString(), 1) async for one in self.stream(address, method, request)
                ]
            except HqApiError:
                if address == self.addresses[-1]:
                    raise
        return []
