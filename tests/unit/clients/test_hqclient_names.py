"""What `from hqclient import ...` promises."""

import subprocess
import sys

import hqclient


def test_every_public_name_is_where_the_package_says() -> None:
    assert {name: getattr(hqclient, name).__class__ for name in hqclient.__all__}.keys() == set(hqclient._HOMES)


def test_a_name_that_is_not_public_is_refused() -> None:
    assert not hasattr(hqclient, "no_such_name")


def test_importing_credential_files_does_not_import_grpc() -> None:
    source = "import sys; from hqclient import CredentialFiles; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0
