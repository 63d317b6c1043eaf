"""The formats of flags' values: what is taken, what is refused, and what is handed on."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from serving.flags import CALLED_ADDRESSES, OWN_ADDRESS, AddressParam, InputFile
from serving.storage.flags import etcd_config


def test_a_tilde_in_a_file_name_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "pw").write_text("secret")
    assert InputFile().convert("~/pw", None, None) == str(tmp_path / "pw")
    assert InputFile(Path).convert("~/pw", None, None) == tmp_path / "pw"
    assert InputFile(allow_dash=True).convert("-", None, None) == "-"
    assert InputFile().convert("", None, None) == ""
    with pytest.raises(click.BadParameter, match="~nobody-here/x: cannot be read: No such file"):
        InputFile().convert("~nobody-here/x", None, None)


@pytest.mark.parametrize(
    ("content", "fault"), [(None, "cannot be read: No such file"), (b"\xff", "is not UTF-8: give a text file")]
)
def test_a_password_that_cannot_be_read_is_a_fault_of_its_flag(
    tmp_path: Path, content: bytes | None, fault: str
) -> None:
    file = tmp_path / "pw"
    if content is not None:
        file.write_bytes(content)
    given = dict.fromkeys(("etcd_ca", "etcd_cert", "etcd_key", "etcd_user"), "")
    with pytest.raises(click.UsageError, match=f"^--etcd-password-file {file}: {fault}"):
        etcd_config({**given, "etcd": "127.0.0.1:2379", "etcd_password_file": str(file)})


NAMED = click.Option(["--location"], metavar="NAME=HOST:PORT,...")


@pytest.mark.parametrize(
    ("kind", "param", "value"),
    [
        (OWN_ADDRESS, None, "unix:/run/hq=1,2"),
        (CALLED_ADDRESSES, None, "unix:/run/hq=1"),
        (CALLED_ADDRESSES, NAMED, "ams=unix:/run/hq=1,127.0.0.1:7071"),
        (CALLED_ADDRESSES, NAMED, "ams"),  # whoever reads it says what to write
        (AddressParam(may_be_url=True), None, "http://etcd-1:2379/, dns:///etcd:2379"),
    ],
)
def test_valid_addresses_are_accepted(kind: AddressParam, param: click.Parameter | None, value: str) -> None:
    assert kind.convert(value, param, None) == value


@pytest.mark.parametrize(
    ("kind", "param", "value"),
    [
        (OWN_ADDRESS, None, "127.0.0.1:1,127.0.0.1:2"),
        (CALLED_ADDRESSES, None, "a:1,::1"),
        (CALLED_ADDRESSES, NAMED, "ams=a"),
    ],
)
def test_malformed_addresses_are_refused(kind: AddressParam, param: click.Parameter | None, value: str) -> None:
    with pytest.raises(click.BadParameter, match=r"HOST:PORT"):
        kind.convert(value, param, None)
