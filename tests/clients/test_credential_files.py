"""Credentials that cannot be used, or must not be sent in plain text, are refused at start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from tests.support.certificates import Certificate
from tests.support.secured import Secured


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path / "secured")


def without_key(tmp_path: Path, good: Certificate) -> CredentialFiles:
    return CredentialFiles(cert=str(good.cert))


def not_there(tmp_path: Path, good: Certificate) -> CredentialFiles:
    return CredentialFiles(ca=str(tmp_path / "no-such-file"))


def no_pem(tmp_path: Path, good: Certificate) -> CredentialFiles:
    (tmp_path / "ca").write_text("hush")
    return CredentialFiles(ca=str(tmp_path / "ca"))


def key_for_certificate(tmp_path: Path, good: Certificate) -> CredentialFiles:
    return CredentialFiles(cert=str(good.key), key=str(good.key))


def no_key(tmp_path: Path, good: Certificate) -> CredentialFiles:
    (tmp_path / "key").write_text("-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n")
    return CredentialFiles(cert=str(good.cert), key=str(tmp_path / "key"))


def no_token(tmp_path: Path, good: Certificate) -> CredentialFiles:
    (tmp_path / "token").write_text("hush hush")
    return CredentialFiles(token_file=str(tmp_path / "token"))


FAULTS: dict[Callable[[Path, Certificate], CredentialFiles], str] = {
    without_key: "give both",
    not_there: "--ca .*no-such-file: cannot be read: No such file",
    no_pem: "--ca .*ca: contains no PEM certificate",
    key_for_certificate: "--cert .*contains no PEM certificate",
    no_key: "--key .*key: contains no PEM private key",
    no_token: "--token-file .*token: contains no token",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_files_that_cannot_be_used_are_told_by_name_at_start(
    tmp_path: Path, secured: Secured, fault: Callable[[Path, Certificate], CredentialFiles]
) -> None:
    with pytest.raises(BadCredentials, match=FAULTS[fault]) as told:
        Credentials(fault(tmp_path, secured.server))
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("address", ["hq.example:7071", "127.evil.example:7071", "10.0.0.1:7071", "[2001:db8::1]:7071"])
def test_a_token_is_not_sent_in_plain_text_to_another_machine(tmp_path: Path, address: str) -> None:
    (tmp_path / "token").write_text("abc.def.ghi")
    credentials = Credentials(CredentialFiles(token_file=str(tmp_path / "token")))
    with pytest.raises(BadCredentials, match="--ca"):
        credentials.check(["127.0.0.1:7071", address])
    credentials.check(["127.0.0.1:7071", "localhost:1", "[::1]:7071"])


def test_the_environment_names_the_files_and_flags_come_first() -> None:
    found = CredentialFiles.from_environment({"HQ_CA": "ca", "HQ_CERT": "c", "HQ_KEY": "k", "HQ_TOKEN_FILE": "t"})
    assert found == CredentialFiles("ca", "c", "k", "t")
    assert CredentialFiles(cert="mine").over(found) == CredentialFiles("ca", "mine", "", "t")
    assert CredentialFiles(token_file="mine").over(found) == CredentialFiles("ca", "c", "k", "mine")
