"""The environment variables of processes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from instancectl.wanted.desired import Desired

# Nothing else is inherited: the supervisor's environment may hold things that its children must not see.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]+")


def base(desired: Desired, revision_id: str, directory: Path, *, is_confined: bool = False) -> dict[str, str]:
    """Variables for everything that runs for a revision: its identity, its node, and its ports.

    Args:
        is_confined: it runs as another user than we: our home is not its home.
    """
    found = {name: os.environ[name] for name in INHERITED if name in os.environ}
    if is_confined:
        found.pop("USER", None)
        found["HOME"] = str(directory)
    found.setdefault("PATH", _DEFAULT_PATH)
    found |= {
        "HQ_INSTANCE": desired.instance_id,
        "HQ_NODE": desired.node,
        "HQ_HOST": desired.host,
        "HQ_REVISION": revision_id,
        "HQ_REVISION_DIR": str(directory),
    }
    return found | {port_variable(port.name): str(port.number) for port in desired.allocation.port}


def for_container(basis: Mapping[str, str], own: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """A container's own variables win over ours, secrets over both."""
    return {**basis, **own, **secrets}


def port_variable(name: str) -> str:
    """HQ_PORT_HTTP_ADMIN for `http-admin`."""
    return f"HQ_PORT_{_NOT_IN_A_NAME.sub('_', name.upper())}"
