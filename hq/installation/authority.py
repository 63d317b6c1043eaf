"""Certificate authorities and what they sign, as PEM files. A key is made once and never overwritten."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hq.installation.files import write_atomically, write_once

CA_VALID: Final = timedelta(days=3650)
VALID: Final = timedelta(days=90)
DUE: Final = timedelta(days=30)  # before its end: the timer has a month of attempts
_CLOCK_SKEW: Final = timedelta(hours=1)
_USAGES: Final = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


class BadKeyFile(Exception):
    """A key or certificate in the folder cannot be used; str() says which, and what to do."""


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A certificate that a machine needs.

    Attributes:
        authority: name of the CA: server, client or etcd.
        path: of the certificate, without `.crt`; its key lies beside it.
        names: DNS names, IP addresses and URIs that it is for.
        usages: server, client.
    """

    authority: str
    path: Path
    names: tuple[str, ...]
    usages: tuple[str, ...]


class CertificateAuthority:
    """A CA in two files: its key stays in the folder `secret`, its certificate goes to all who trust it."""

    def __init__(self, folder: Path, name: str, now: datetime) -> None:
        """Load it; make it if there is none. Raises BadKeyFile."""
        self._key = load_or_make_key(folder / f"{name}-ca.key")
        self.cert = folder / f"{name}-ca.crt"
        if not self.cert.exists():
            write_once(self.cert, _self_signed(f"HQ {name} CA", self._key, now).public_bytes(Encoding.PEM))
        self._certificate = load_certificate(self.cert)
        if self._certificate.public_key() != self._key.public_key():
            raise BadKeyFile(f"{self.cert}: does not belong to {name}-ca.key: put the right files of a backup there")

    def renew(self, request: CertificateRequest, now: datetime, due: timedelta) -> bool:
        """Write a certificate unless there is one that holds for longer than `due`; return whether it was written.

        The key stays, so that whoever rereads both files never sees two that do not belong together.
        """
        cert = request.path.with_suffix(".crt")
        key = load_or_make_key(request.path.with_suffix(".key"))
        if cert.exists() and self._is_good(load_certificate(cert), request, key, now + due):
            return False
        write_atomically(cert, self._sign(request, key, now).public_bytes(Encoding.PEM))
        return True

    def _is_good(
        self, held: x509.Certificate, request: CertificateRequest, key: ec.EllipticCurvePrivateKey, until: datetime
    ) -> bool:
        try:
            held.verify_directly_issued_by(self._certificate)
        except (ValueError, InvalidSignature):
            return False
        names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        is_same = set(names) == set(_general_names(request.names)) and held.public_key() == key.public_key()
        return is_same and held.not_valid_after_utc > until

    def _sign(self, request: CertificateRequest, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
        ends_at = min(now + VALID, self._certificate.not_valid_after_utc)
        builder = _builder(request.names[0], self._certificate.subject, key, now, ends_at)
        own = self._key.public_key()
        return (
            builder.add_extension(x509.SubjectAlternativeName(_general_names(request.names)), critical=False)
            .add_extension(x509.ExtendedKeyUsage([_USAGES[each] for each in request.usages]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def load_or_make_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key of the file. Raises BadKeyFile."""
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        write_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError):
        raise BadKeyFile(f"{path}: is not an unencrypted private key in PEM form: take it from a backup") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadKeyFile(f"{path}: is not a key of an elliptic curve: move it away to have another one made")
    return key


def load_certificate(path: Path) -> x509.Certificate:
    """The first certificate of the file. Raises BadKeyFile."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise BadKeyFile(f"{path}: is not a certificate in PEM form: move it away to have another one made") from None


def _self_signed(name: str, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        _builder(name, issuer, key, now, now + CA_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, ends_at: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(ends_at)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(name) for name in names]


def _general_name(name: str) -> x509.GeneralName:
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
