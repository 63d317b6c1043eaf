"""Real certificates for tests, made in memory and laid down as PEM files."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support import canary

_USES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_OWN = (ipaddress.ip_address("127.0.0.1"),)
_HOSTS = (*map(x509.IPAddress, _OWN), x509.DNSName("localhost"))


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM form."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates that are good for a day, for 127.0.0.1, as server and as client."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory, self._name = directory, name
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._own = Certificate(directory / f"{name}.crt", directory / f"{name}.key")
        builder = _builder(name, name, self._key.public_key(), timedelta(days=1))
        own = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        _lay_down(self._own, own.sign(self._key, hashes.SHA256()), self._key)

    @property
    def cert(self) -> Path:
        """What others trust."""
        return self._own.cert

    def issue(
        self,
        name: str,
        uris: Sequence[str] = (),
        good_for: timedelta = timedelta(days=1),
        addresses: Sequence[str] = (),
    ) -> Certificate:
        """A certificate and its key, in files of that name, which are overwritten.

        `uris` become URI SANs; it is good for these IP addresses, too.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        more = [x509.IPAddress(address) for each in addresses if (address := ipaddress.ip_address(each)) not in _OWN]
        names = [*_HOSTS, *more, *map(x509.UniformResourceIdentifier, uris)]
        builder = (
            _builder(name, self._name, key.public_key(), good_for)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(_USES), critical=False)
        )
        issued = Certificate(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        _lay_down(issued, builder.sign(self._key, hashes.SHA256()), key)
        return issued


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePublicKey, good_for: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + good_for)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _lay_down(files: Certificate, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    files.cert.write_bytes(certificate.public_bytes(Encoding.PEM))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files.key.write_bytes(pem)
    canary.keep(pem.splitlines()[2].decode())
