"""Who a client is and whom it trusts: files in PEM form and a token, read again when somebody renews them.

    credentials = Credentials(CredentialFiles(ca="ca.pem", cert="me.pem", key="me.key"))
    async with Client(["hq-1:7071"], credentials=credentials) as client: ...

If a renewed file is unusable, the previous one stays in force, with a warning. The contents never appear in an
error, log line or repr.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import grpc

from hqclient.connecting import find_cause
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.errors import HqApiError
from hqclient.links import CHANNEL_OPTIONS

log = logging.getLogger(__name__)

T = TypeVar("T")

_CHECK_EVERY_S: Final = 1.0
_PLAIN: Final = CredentialFiles()
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, slots=True, repr=False)
class _Tls:
    ca: bytes | None
    key: bytes | None
    chain: bytes | None

    def context(self) -> ssl.SSLContext:
        made = ssl.create_default_context(cadata=self.ca.decode("latin-1") if self.ca else None)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.chain and self.key:
            # OpenSSL reads files only. These hold what was checked, even if the named ones have changed since.
            with os.fdopen(os.memfd_create("own certificate"), "wb") as file:
                file.write(self.chain + b"\n" + self.key)
                file.flush()
                made.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return made


class Credentials:
    """Opens channels and makes metadata for each call, from the current files.

    Args:
        files: none: plain text, without authentication.
        prefix: of the flags that name the files, for errors: `--hq-` of --hq-ca.
        now: seconds, from any clock; files are checked at most once a second.

    Raises:
        BadCredentials: a file cannot be used.
    """

    def __init__(
        self, files: CredentialFiles = _PLAIN, now: Callable[[], float] = time.monotonic, *, prefix: str = "--"
    ) -> None:
        self.files, self._prefix = files, prefix
        if bool(files.cert) != bool(files.key):
            both = f"give both {prefix}cert and {prefix}key"
            raise BadCredentials(f"a client certificate needs its key and the reverse: {both}")
        tls = [name for name in (files.ca, files.cert, files.key) if name]
        self._tls = _Renewed(tls, lambda: _read_tls(files, prefix), now) if files.tls else None
        self._context: tuple[_Tls, ssl.SSLContext] | None = None
        token = files.token_file
        self._token = _Renewed([token], lambda: _read_token(token, prefix), now) if token else None

    def __repr__(self) -> str:
        return f"Credentials({self.files})"

    def check(self, addresses: Iterable[str]) -> None:
        """Refuse to send a token where others could read it.

        Raises:
            BadCredentials: there is a token, no TLS, and an address of another machine.
        """
        if self._token is None or self._tls is not None:
            return
        for address in addresses:
            if not _is_loopback(address):
                raise BadCredentials(
                    f"the token would be sent to {address} in plain text: give a CA for TLS ({self._prefix}ca)"
                )

    def version(self) -> int:
        """Changes when connections must be reopened because their certificates were renewed."""
        if self._tls is None:
            return 0
        self._tls.current()
        return self._tls.version

    def channel(
        self, address: str, interceptors: Sequence[Any] = (), options: Sequence[tuple[str, int]] = CHANNEL_OPTIONS
    ) -> grpc.aio.Channel:
        """A channel to an address, with the current certificates."""
        if self._tls is None:
            return grpc.aio.insecure_channel(address, options=options, interceptors=interceptors)
        tls = self._tls.current()
        made = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.chain)
        return grpc.aio.secure_channel(address, made, options=options, interceptors=interceptors)

    def tls(self) -> Callable[[], ssl.SSLContext] | None:
        """A factory of contexts with the current certificates, for connections other than gRPC's; None: no TLS."""
        return None if self._tls is None else partial(self._newest, self._tls)

    def _newest(self, files: _Renewed[_Tls]) -> ssl.SSLContext:
        tls = files.current()
        if self._context is None or self._context[0] is not tls:
            self._context = tls, tls.context()
        return self._context[1]

    async def find_cause(self, address: str) -> str:
        """Why there is no connection to an address, with these files; empty: there could be one now."""
        return await find_cause(address, self.files, self._prefix)

    async def explain(self, error: HqApiError) -> HqApiError:
        """Return the error; if it says that nobody answered, with the reason why."""
        if error.from_hq or (error.sent and error.code is not grpc.StatusCode.DEADLINE_EXCEEDED):
            return error
        if why := await self.find_cause(error.endpoint):
            error.reword(f"cannot connect to {error.endpoint}: {why}")
        return error

    def metadata(self) -> Sequence[tuple[str, str]]:
        """Return the metadata that is sent with each call."""
        return () if self._token is None else (("authorization", f"Bearer {self._token.current()}"),)


class _Renewed(Generic[T]):
    """A value read from files, and read again when they change."""

    def __init__(self, names: Sequence[str], read: Callable[[], T], now: Callable[[], float]) -> None:
        self._names, self._read, self._now = names, read, now
        self._stamps = self._file_stamps()
        self._value = read()
        self._check_at = now() + _CHECK_EVERY_S
        self.version = 1

    def current(self) -> T:
        """The last usable contents of the files."""
        now = self._now()
        if now >= self._check_at:
            self._check_at = now + _CHECK_EVERY_S
            stamps = self._file_stamps()  # before reading: a change during the read is noticed next time
            if stamps != self._stamps:
                self._stamps = stamps
                self._renew()
        return self._value

    def _renew(self) -> None:
        try:
            value = self._read()
        except BadCredentials as error:
            log.warning("%s; the previous contents remain in force", error)
            return
        if value != self._value:
            self._value = value
            self.version += 1
            log.info("reloaded: %s", ", ".join(self._names))

    def _file_stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(name) for name in self._names]


def _stamp(name: str) -> tuple[int, int, int] | None:
    try:
        found = Path(name).expanduser().stat()
    except (OSError, RuntimeError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_file(flag: str, name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except (OSError, RuntimeError) as error:
        fault = error.strerror if isinstance(error, OSError) else "no such user"
        raise BadCredentials(f"{flag} {name}: cannot be read: {fault}: give one that this user can read") from None


def _read_token(name: str, prefix: str) -> str:
    token = _read_file(f"{prefix}token-file", name).decode("latin-1").strip()
    if not _TOKEN.fullmatch(token):  # gRPC would refuse it, and show it
        expected = "expected one token, as `hqctl token sign` prints it"
        raise BadCredentials(f"{prefix}token-file {name}: contains no token: {expected}")
    return token


def _read_tls(files: CredentialFiles, prefix: str) -> _Tls:
    chain = _read_file(f"{prefix}cert", files.cert) if files.cert else None
    key = _read_file(f"{prefix}key", files.key) if files.key else None
    ca = _read_file(f"{prefix}ca", files.ca) if files.ca else None
    if ca is not None:
        _certificates(ca, f"{prefix}ca {files.ca}")
    if chain is not None and key is not None:
        _check_pair(chain, key, files, prefix)
    return _Tls(ca, key, chain)


def _certificates(pem: bytes, name: str) -> list[Any]:
    from cryptography import x509  # imported only if there are certificates

    try:
        return list(x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise BadCredentials(
            f"{name}: contains no PEM certificate: give a file that begins with -----BEGIN CERTIFICATE-----"
        ) from None


def _check_pair(chain: bytes, key: bytes, files: CredentialFiles, prefix: str) -> None:
    """gRPC would accept a mismatched pair, and fail at each handshake without saying why."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    own = _certificates(chain, f"{prefix}cert {files.cert}")[0]
    try:
        private = load_pem_private_key(key, None)
    except TypeError:
        raise BadCredentials(f"{prefix}key {files.key}: is encrypted: give a file with the unencrypted key") from None
    except Exception:
        raise BadCredentials(
            f"{prefix}key {files.key}: contains no PEM private key: give the file with the key of {prefix}cert"
        ) from None
    if private.public_key() != own.public_key():
        raise BadCredentials(
            f"{prefix}key {files.key}: is not the key of {prefix}cert {files.cert}: give the two that belong together"
        )


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or address.startswith("unix:") or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a host name, even if it starts like an address
        return False
