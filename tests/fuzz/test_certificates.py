"""Certificates of callers, spoiled: the parser names whom they name, or refuses; it never fails otherwise."""

from __future__ import annotations

import base64
import textwrap
import warnings
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.utils import CryptographyDeprecationWarning
from hypothesis import example, given
from hypothesis import strategies as st

from serving.auth.certificates import Certificates, spiffe_id
from serving.clock import SystemClock
from serving.errors import Unauthenticated
from tests.support.certificates import Authority

DOMAIN: Final = "hq.test"
KEY: Final = Ed25519PrivateKey.generate()
URIS: Final = st.one_of(
    st.sampled_from(
        [
            f"spiffe://{DOMAIN}/agent/n1",
            f"spiffe://{DOMAIN}/",
            f"spiffe://x.{DOMAIN}/a",
            "https://hq.test/a",
            "",
            "spiffe:",
        ]
    ),
    st.text(st.characters(codec="ascii"), max_size=60).map(lambda text: f"spiffe://{DOMAIN}/{text}"),
    st.text(st.characters(codec="ascii"), max_size=60),
)


def identity(pem: bytes) -> str:
    """Identity that the server takes; empty: it is refused."""
    with warnings.catch_warnings(action="ignore", category=CryptographyDeprecationWarning):  # a serial number of zero
        try:
            return Certificates(DOMAIN, SystemClock()).identity(pem).name
        except Unauthenticated:
            return ""


def signed(*extensions: x509.ExtensionType) -> bytes:
    name, now = x509.Name([]), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(KEY, None).public_bytes(Encoding.PEM)


@given(st.lists(URIS, max_size=3), st.lists(st.sampled_from(["hq.test", f"spiffe://{DOMAIN}/agent/n1"]), max_size=2))
def test_a_caller_has_the_name_of_its_one_uri_or_none(uris: list[str], others: list[str]) -> None:
    names = [*map(x509.UniformResourceIdentifier, uris), *map(x509.DNSName, others)]
    found = identity(signed(x509.SubjectAlternativeName(names)) if names else signed())
    assert found in ("", *uris)
    if found:
        assert len(uris) == 1
        assert spiffe_id(found, DOMAIN) == found


@given(st.binary(max_size=80))
@example(bytes.fromhex("3003860161"))
@example(bytes.fromhex("300386 01ff".replace(" ", "")))
@example(bytes.fromhex("3080"))
def test_names_that_are_no_names_are_refused(value: bytes) -> None:
    san = x509.SubjectAlternativeName.oid
    assert identity(signed(x509.UnrecognizedExtension(san, value))) in ("", *_uris_in(value))


def _uris_in(value: bytes) -> list[str]:
    """What hypothesis might write by chance: an id that is one."""
    return [text for text in [value.decode("latin-1")[4:]] if text.startswith(f"spiffe://{DOMAIN}/")]


@lru_cache(1)
def _genuine(directory: Path) -> bytes:
    pem = Authority(directory).issue("caller", [f"spiffe://{DOMAIN}/agent/n1"]).cert.read_bytes()
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """In DER."""
    return _genuine(tmp_path_factory.mktemp("ca"))


@given(data=st.data())
def test_a_changed_certificate_is_read_or_refused(genuine: bytes, data: st.DataObject) -> None:
    changed = bytearray(genuine)
    for place in data.draw(st.lists(st.integers(0, len(genuine) - 1), min_size=1, max_size=4)):
        changed[place] = data.draw(st.integers(0, 255))
    words = "\n".join(textwrap.wrap(base64.b64encode(bytes(changed)).decode(), 64))
    identity(f"-----BEGIN CERTIFICATE-----\n{words}\n-----END CERTIFICATE-----\n".encode())


def test_a_certificate_with_any_changed_byte_is_read_or_refused(genuine: bytes) -> None:
    """This covers versions, dates and tags that no generator would think of."""
    for place in range(len(genuine)):
        for value in (0, 1, 2, 5, 0x7F, 0x80, 0xFF, genuine[place] ^ 1, genuine[place] ^ 0x20):
            changed = genuine[:place] + bytes([value]) + genuine[place + 1 :]
            words = base64.b64encode(changed)
            identity(b"-----BEGIN CERTIFICATE-----\n" + words + b"\n-----END CERTIFICATE-----\n")
