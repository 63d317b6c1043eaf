"""Certificates for tests, made with the openssl command; where there is none the test is skipped."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


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
        self._own = Certificate(directory / f"{name}.crt", directory / f"{name}.key")
        own = ("-keyout", self._own.key, "-out", self._own.cert)
        _openssl("req", "-x509", *_KEY, "-days", "1", "-subj", f"/CN={name}", *own)

    @property
    def cert(self) -> Path:
        """What others trust."""
        return self._own.cert

    def issue(self, name: str) -> Certificate:
        issued = Certificate(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        request, extensions = self._directory / f"{name}.csr", self._directory / f"{name}.ext"
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl("req", *_KEY, "-subj", f"/CN={name}", "-keyout", issued.key, "-out", request)
        signed = ("-CA", self._own.cert, "-CAkey", self._own.key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, "-days", "1", *signed, "-out", issued.cert)
        return issued


def _openssl(*arguments: object) -> None:
    command = shutil.which("openssl")
    if command is None:
        pytest.skip("needs the openssl command to make certificates")
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
