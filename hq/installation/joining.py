"""A second location beside one that is there: known to the same people, and in each other's federation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from hq.installation.files import write_atomically, write_once
from hq.installation.plan import BadPlan, InstallationPlan
from hq.installation.settings import settings_of
from serving.yamltext import BadYaml, load

# etcd's CA stays apart: who opens one location's store opens no other's.
_SHARED: Final = ("server-ca.key", "server-ca.crt", "client-ca.key", "client-ca.crt", "token.key")
_LOCATIONS: Final = Path("config") / "federated.yaml"


def join_locations(folder: Path, plan: InstallationPlan, held: Path, beside: InstallationPlan) -> None:
    """Prepare a folder, before it is first written, for a location beside that of another folder.

    Raises:
        BadPlan: they cannot be beside each other; str() says what to change.
        OSError: a file cannot be read or written.
    """
    if plan.location == beside.location:
        raise BadPlan(f"--location {plan.location}: is the name of the one in {held}; choose another")
    if shared := set(plan.machines.values()) & set(beside.machines.values()):
        raise BadPlan(f"{min(shared)}: is a machine of {held}; each location has machines of its own")
    _share_secrets(held, folder)
    _add_location(folder, plan, _add_location(held, plan))


def _share_secrets(held: Path, folder: Path) -> None:
    for name in _SHARED:
        content, place = (held / "secret" / name).read_bytes(), folder / "secret" / name
        if not write_once(place, content) and place.read_bytes() != content:
            raise BadPlan(f"{place}: is not the one of {held}: --join is for a folder that was not written yet")


def _add_location(folder: Path, plan: InstallationPlan, text: str = "") -> str:
    """Name a location in the federation of a folder; return the file's text. `text`: what a new file begins with."""
    path = folder / _LOCATIONS
    text = path.read_text() if path.exists() else text
    if plan.location not in _locations_in(text, path):
        text = _extend(text, plan, path)
    write_atomically(path, text.encode())
    return text


def _extend(text: str, plan: InstallationPlan, path: Path) -> str:
    replicas = settings_of(plan)["replica_list"]
    extended = f"{text.rstrip()}\n  {plan.location}:\n    replicas: [{replicas}]\n"
    wanted = {**_locations_in(text, path), plan.location: {"replicas": replicas.split(", ")}}
    try:
        if _locations_in(extended, path) == wanted:
            return extended
    except BadPlan:
        pass  # the file is written in another style
    raise BadPlan(f"{path}: add below `locations`: {plan.location}: {{replicas: [{replicas}]}}, then try again")


def _locations_in(text: str, path: Path) -> dict[str, Any]:
    try:
        content = load(text.encode())
    except (BadYaml, yaml.YAMLError) as error:
        raise BadPlan(f"{path}: {error}") from None
    locations = content.get("locations") if isinstance(content, dict) else None
    if not isinstance(locations, dict):
        raise BadPlan(f"{path}: write `locations:`, and below it each location by name with its replicas")
    return locations
