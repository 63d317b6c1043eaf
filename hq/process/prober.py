"""A replica probes its own agents' listener: while nobody gets in there, the agents' silence is its own fault."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
from typing import Final

from google.rpc import code_pb2 as codes  # type: ignore[import-untyped,unused-ignore]

from hq.liveness.reachability import SelfProbe
from serving.clock import Clock
from serving.errors import Overloaded
from serving.limiting.admission import Admission
from serving.listeners import Addresses
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed

log = logging.getLogger(__name__)

_EVERY_S: Final = 3.0
_PATIENCE_S: Final = 3.0
# No such method: a caller that gets in is told so. Health checks would be answered even on connections over the limit.
_KNOCK: Final = "/hq.v1.InstanceService/Knock"


class Prober:
    """Tells the replica's door of each probe that succeeded. (On a shared port, a sibling may have answered.)"""

    def __init__(
        self, door: SelfProbe, clock: Clock, liveness_timeout_s: float, admission: Admission, *, is_encrypted: bool
    ) -> None:
        self._door, self._clock, self._admission, self._is_encrypted = door, clock, admission, is_encrypted
        self._every_s = min(_EVERY_S, liveness_timeout_s / 10)

    async def run(self, listening: asyncio.Future[Addresses]) -> None:
        """Probe for ever, over a new connection each time: it is new agents that may not get in."""
        found = await asyncio.shield(listening)
        address = _reachable(found.agents or found.grpc)
        door, clock = self._door, self._clock
        door.probed_at = clock.now()  # from now on: a listener that nobody ever gets into is shut, too
        while True:
            if await self._gets_in(address):
                door.probed_at = clock.now()
            await asyncio.sleep(self._every_s)

    async def _gets_in(self, address: str) -> bool:
        channel = Channel(address, _unverified_context if self._is_encrypted else None)
        try:
            self._admission.check_call("")
            await channel.unary(_KNOCK, b"", _PATIENCE_S)
        except (CallFailed, Overloaded) as error:
            if isinstance(error, CallFailed) and error.code == codes.UNIMPLEMENTED:
                return True
            log.warning("the probe of %s failed: %s", address, error)
        finally:
            await channel.close()
        return False


def _reachable(address: str) -> str:
    if address.startswith("unix:"):
        return address
    host, _, port = address.rpartition(":")
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:  # a name
        return f"{host or 'localhost'}:{port}"
    if not found.is_unspecified:
        return address
    return f"127.0.0.1:{port}" if found.version == 4 else f"[::1]:{port}"


def _unverified_context() -> ssl.SSLContext:
    """This process itself answers, and nothing secret is sent, so the certificate may have any name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context
