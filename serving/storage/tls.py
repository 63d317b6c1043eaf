"""Certificates for etcd, read again when their files change: new connections show the new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from serving.auth.watched_files import BadSecurity, WatchedFiles

_LOOK_EVERY_S: Final = 1.0


class EtcdTls:
    """Credentials of `store.etcd` from files in PEM form; `cert` and `key` empty: without a client certificate."""

    def __init__(self, ca: str, cert: str, key: str, now: Callable[[], float]) -> None:
        """Raises BadSecurity: a file cannot be used."""
        if bool(cert) != bool(key):
            raise BadSecurity("--etcd-cert and --etcd-key must be given together: give both")
        paths = [Path(name) for name in (ca, cert, key) if name]
        self._files = WatchedFiles("etcd-ca", paths, _credentials)
        self._now, self._look_at = now, now() + _LOOK_EVERY_S

    @property
    def current(self) -> grpc.ChannelCredentials:
        """The credentials in force."""
        return self._files.current

    @property
    def fault(self) -> str:
        """Why the files as they are now are not in force; empty: they are."""
        return self._files.fault

    def has_changed(self) -> bool:
        """Whether `current` has changed since the last call; the files are checked once a second at most."""
        now = self._now()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_EVERY_S
        return self._files.reread()


def _credentials(contents: Sequence[bytes]) -> grpc.ChannelCredentials:
    ca, cert, key = (*contents, b"", b"")[:3]
    try:
        x509.load_pem_x509_certificates(ca)
        if cert and x509.load_pem_x509_certificate(cert).public_key() != load_pem_private_key(key, None).public_key():
            raise BadSecurity("the client certificate and key do not match")
    except (ValueError, TypeError) as error:
        raise BadSecurity("it contains no PEM certificate or no unencrypted PEM key") from error
    return grpc.ssl_channel_credentials(ca, key or None, cert or None)
