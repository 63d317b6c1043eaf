"""TLS on the ways of a rig: from replicas to etcd, from everybody to replicas and gateways; or nothing of it.

Between members there is none: the gates there tell one channel from another by what is said on it (network.py).
The rig itself, and the witness, speak with etcd at a second port, without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import grpc

from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.links import insecure_channel
from tests.rig.places import Places
from tests.support.certificates import Authority, Certificate


@dataclass(frozen=True, slots=True)
class Trust:
    """Who believes whom. `ca` and `own` are None where nothing is encrypted."""

    ca: Path | None = None
    own: Certificate | None = None

    @property
    def credentials(self) -> Credentials | None:
        """Credentials of every client."""
        return Credentials(CredentialFiles(ca=str(self.ca))) if self.ca else None

    def channel(self, address: str) -> grpc.aio.Channel:
        """For who does not use the client library."""
        credentials = self.credentials
        return credentials.channel(address) if credentials else insecure_channel(address)

    def etcd_flags(self, plain_url: str, tls_url: str) -> tuple[str, ...]:
        """A member serves both."""
        if self.own is None:
            return ()
        urls = f"--listen-client-urls={plain_url},{tls_url}"
        return (urls, f"--cert-file={self.own.cert}", f"--key-file={self.own.key}")

    def server_flags(self) -> list[str]:
        """Flags of replicas and gateways."""
        return [f"--tls-cert={self.own.cert}", f"--tls-key={self.own.key}"] if self.own else []

    def replica_flags(self) -> list[str]:
        return [*self.server_flags(), f"--etcd-ca={self.ca}"] if self.ca else []

    def gateway_flags(self) -> list[str]:
        return [*self.server_flags(), f"--location-ca={self.ca}"] if self.ca else []


PLAIN = Trust()
_GOOD_FOR = timedelta(days=400)  # wall clocks jump by months, and a replica refuses what has expired by its own


def made_for(directory: Path, places: Places) -> Trust:
    """A new authority, and one certificate for everybody, wherever they live."""
    authority = Authority(directory / "tls")
    hosts = {places.gates, *(place.host for place in (*places.members, *places.replicas))}
    own = authority.issue("server", good_for=_GOOD_FOR, addresses=sorted(hosts))
    return Trust(authority.cert, own)
