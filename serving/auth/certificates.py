"""Client certificates: the one SPIFFE id in them. TLS has already verified that they are genuine."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from serving.clock import Clock
from serving.errors import Unauthenticated
from serving.rights.access import Identity, ProofKind

_REMEMBERED: Final = 16_384
_MAX_ID: Final = 2_048
_UNREADABLE: Final = (
    *(ValueError, TypeError, OverflowError),
    *(x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion),
)
VERIFIED_BY: Final = b"verified by sha256:"
"""What a transport writes behind a certificate in PEM form, before the fingerprint of the CA that TLS found."""
_SPIFFE: Final = re.compile(r"spiffe://([a-z0-9._-]{1,255})((?:/[A-Za-z0-9._-]+)+)")


class Certificates:
    """Names callers by their certificates. Those seen are remembered, so that the next call costs a lookup."""

    def __init__(self, trust_domain: str, clock: Clock, bundle: bytes = b"") -> None:
        """`bundle`: the CAs in force (PEM); empty: whatever TLS let in."""
        self._trust_domain, self._clock = trust_domain, clock
        self._known: dict[bytes, Identity] = {}
        self._clear: dict[bytes, None] = {}
        self.use(bundle)

    def use(self, bundle: bytes) -> None:
        """Put other CAs in force: connections that former CAs let in prove nothing any more."""
        listed = x509.load_pem_x509_certificates(bundle) if bundle else []
        self._authorities = {fingerprint(one.public_bytes(Encoding.DER)): one for one in listed}
        self._known.clear()

    def accepts(self, identity: Identity) -> bool:
        """Whether the CA that verified the identity's certificate is still in force."""
        return not self._authorities or identity.key in self._authorities

    def is_withdrawn(self, pem: bytes) -> bool:
        """Whether the CA of a certificate, whoever it names, is no longer in force."""
        try:
            return bool(self._authorities) and not self._authority(pem)
        except _UNREADABLE:
            return False

    def check_clear(self, pem: bytes) -> None:
        """Check that a certificate names one identity at most: where a token says who calls, that is enough.

        Raises:
            Unauthenticated: it has several URIs, so that others could take it for another's, or cannot be read.
        """
        if pem in self._clear:
            return
        uris, _ = _read_certificate(pem)
        if len(uris) > 1:
            raise Unauthenticated(
                _wrong_san_message(f"this one has {len(uris)}, and is refused even beside a valid token")
            )
        if len(self._clear) >= _REMEMBERED:
            del self._clear[next(iter(self._clear))]
        self._clear[pem] = None

    def identity(self, pem: bytes) -> Identity:
        """Identity of the certificate's owner.

        Raises:
            Unauthenticated: it has no SPIFFE id, several, one of a foreign trust domain, or has expired.
        """
        known = self._known.get(pem)
        if known is None:
            known = self._parse_identity(pem)
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[pem] = known
        if known.expires_at * 1000 < self._clock.wall_ms():
            raise Unauthenticated(f"the certificate of {known.name} has expired: reconnect with a new one")
        return known

    def _parse_identity(self, pem: bytes) -> Identity:
        uris, expires_at = _read_certificate(pem)
        if len(uris) != 1:
            raise Unauthenticated(_wrong_san_message(f"this one has {len(uris) or 'none'}"))
        name, authority = spiffe_id(uris[0], self._trust_domain), self._authority(pem)
        if self._authorities and not authority:
            raise Unauthenticated(f"the CA of the certificate of {name} was withdrawn: reconnect with a new one")
        serial = x509.load_pem_x509_certificate(pem).serial_number
        return Identity(name, ProofKind.CERTIFICATE, expires_at, authority, f"{serial:x}")

    def _authority(self, pem: bytes) -> str:
        """The fingerprint of the CA above a certificate, if it is in force."""
        _, known, verified_by = pem.rpartition(VERIFIED_BY)
        if known:
            found = verified_by.decode()
            return found if found in self._authorities else ""
        certificate = x509.load_pem_x509_certificate(pem)
        return next((mark for mark, one in self._authorities.items() if _is_issuer(one, certificate)), "")


def fingerprint(der: bytes) -> str:
    """The SHA-256 of a certificate, in hexadecimal digits."""
    return hashlib.sha256(der).hexdigest()


def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _read_certificate(pem: bytes) -> tuple[list[str], float]:
    """The URIs in a certificate, and when it expires. Raises Unauthenticated."""
    expires_at = 0.0
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        expires_at = certificate.not_valid_after_utc.timestamp()
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return extension.value.get_values_for_type(x509.UniformResourceIdentifier), expires_at
    except x509.ExtensionNotFound:
        return [], expires_at
    except _UNREADABLE as error:
        raise Unauthenticated("cannot parse the client certificate") from error


def spiffe_id(uri: str, trust_domain: str) -> str:
    """The uri itself. Raises Unauthenticated: it is not a SPIFFE id, or is one of another trust domain."""
    found = _SPIFFE.fullmatch(uri) if len(uri) <= _MAX_ID else None
    if found is None or {".", ".."}.intersection(found[2].split("/")):
        raise Unauthenticated(_wrong_san_message("this one has a different URI"))
    if found[1] != trust_domain:
        raise Unauthenticated(f"the client certificate is not from trust domain {trust_domain}")
    return uri


def _wrong_san_message(instead: str) -> str:
    return f"a client certificate needs exactly one URI SAN, spiffe://TRUST-DOMAIN/PATH; {instead}"
