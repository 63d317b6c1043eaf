"""How servers read the files of `config/`: with their own parsers, so that `hq init` says what they would say.

The one place where HQ knows the other servers; they are imported only when a file is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serving.auth.policy import parse as parse_policy
from serving.auth.revocations import parse_revoked
from serving.auth.watched_files import BadSecurity

# A policy of each server names an identity of the trust domain, and who has all rights.
POLICIES: Final = ("hq", "hq-cms", "hq-federated", "hq-nanny", "hq-walle")


def read_config(name: str, content: bytes) -> None:
    """Read a file of `config/` as its server does; secrets that it names are on the server's machine, and not read.

    Raises BadSecurity, with the reason: the server would refuse the file.
    """
    try:
        _READERS[name](content)
    except UnicodeDecodeError:
        raise BadSecurity("is not text in UTF-8") from None


def _read_sites(content: bytes) -> None:
    from cms.sites import BadSites, parse_sites

    try:
        parse_sites(content.decode())
    except BadSites as error:
        raise BadSecurity(str(error)) from None


def _read_walle(content: bytes) -> None:
    from walle.process.config import parse
    from walle.process.fields import BadConfig

    try:
        parse(content, None)
    except BadConfig as error:
        raise BadSecurity(str(error)) from None


def _read_federated(content: bytes) -> None:
    from federated.locations.config import BadGatewayConfig, parse

    try:
        parse(content.decode())
    except BadGatewayConfig as error:
        raise BadSecurity(str(error).replace("\n", "; ")) from None


_READERS: Final[dict[str, Callable[[bytes], object]]] = {
    "revoked.yaml": parse_revoked,
    "sites.yaml": _read_sites,
    "walle.yaml": _read_walle,
    "federated.yaml": _read_federated,
    **{f"policies/{name}.yaml": parse_policy for name in POLICIES},
}
CHECKED: Final = tuple(_READERS)
